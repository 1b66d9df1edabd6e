// Options of a generated stub; for the gRPC programs that pass them.
#ifndef VERBENA_RPC_STUB_OPTIONS_H_
#define VERBENA_RPC_STUB_OPTIONS_H_

namespace rpc {

class StubOptions {
 public:
  StubOptions() = default;
  explicit StubOptions(const char* suffix_for_stats)
      : suffix_for_stats_(suffix_for_stats) {}

  // A label of this stub's calls, for interceptors that keep statistics
  // (ClientRpcInfo).
  void set_suffix_for_stats(const char* suffix) { suffix_for_stats_ = suffix; }
  const char* suffix_for_stats() const { return suffix_for_stats_; }

 private:
  const char* suffix_for_stats_ = nullptr;
};

}  // namespace rpc

#endif  // VERBENA_RPC_STUB_OPTIONS_H_
