// The key-value service as a client sees it: kv.proto's calls with the choice
// of inline or attached made, deadlines set, and errors that say which server.
//
//   kv::Client client({.address = "rdma://127.0.0.1:50051"});
//   absl::Status put = client.Put("key", value).status();
//   absl::StatusOr<kv::Value> got = client.Get("key");
//
// Thread rule: every function may be called from any thread.
//
// Errors: the server's or the transport's status; the text names the address.
// NOT_FOUND (Get), RESOURCE_EXHAUSTED (the server's memory limit), UNAVAILABLE
// (no server there, or it went away), DEADLINE_EXCEEDED; FAILED_PRECONDITION
// where the call could not even begin: the address or the device is wrong.
#ifndef VERBENA_EXAMPLES_KV_CLIENT_H_
#define VERBENA_EXAMPLES_KV_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "examples/kv/kv.rpc.pb.h"
#include "rpc/rpc.h"

namespace kv {

struct ClientOptions {
  std::string address;          // "rdma://HOST:PORT"
  std::string device = "auto";  // "auto", "soft", or a verbs device's name
  // For each call; calls that carry values get a second for every 10 MB on top.
  absl::Duration timeout = absl::Seconds(30);
  // The server may be another user's; it has to allow it, too.
  bool allow_other_users = false;
};

// Of a Watch; see WatchEvent in kv.proto.
using WatchFunction =
    absl::FunctionRef<bool(const WatchEvent& event, rpc::BufferChain value)>;

struct Value {
  rpc::BufferChain bytes;
  uint64_t version = 0;
};

class Client {
 public:
  // Connects with the first call, which also tells what is wrong with
  // `options`.
  explicit Client(ClientOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<Value> Get(std::string_view key);

  // `value` should be of AllocateValue: that memory is sent without a copy. Its
  // bytes must not change until the call is over.
  absl::StatusOr<PutResponse> Put(std::string_view key, rpc::BufferChain value);

  // As Put, but returns at once. `done` is called exactly once, on a thread of
  // the transport or on this one: it must not block.
  void PutAsync(std::string_view key, rpc::BufferChain value,
                std::function<void(absl::Status)> done);

  absl::StatusOr<CompareAndSwapResponse> CompareAndSwap(
      std::string_view key, uint64_t expected_version, rpc::BufferChain value);
  absl::StatusOr<DeleteResponse> Delete(std::string_view key);
  // One page; see ListRequest in kv.proto.
  absl::StatusOr<ListResponse> List(std::string_view prefix, uint32_t page_size,
                                    std::string_view page_token);
  absl::StatusOr<StatsResponse> Stats();

  // Sets many keys in one call.
  //
  //   kv::Client::Loading loading(client, total_bytes);
  //   while (... && loading.Put(key, value)) {}
  //   absl::StatusOr<LoadSummary> summary = loading.Finish();
  class Loading;

  // Calls `on_event` for each event, on this thread, until it returns false:
  // then OK. Has no deadline.
  absl::Status Watch(const WatchRequest& request, WatchFunction on_event);

  // Memory for a value of `bytes`: the heap's where it will be sent inside the
  // message, else registered. RESOURCE_EXHAUSTED: this process has too much
  // registered memory in use.
  absl::StatusOr<rpc::BufferChain> AllocateValue(uint64_t bytes);

  const std::string& address() const { return options_.address; }

 private:
  struct AsyncPut;

  void SetDeadline(rpc::ClientContext* context, uint64_t value_bytes) const;
  // An error as this header describes it.
  absl::Status Explain(const rpc::Status& status,
                       const rpc::ClientContext& context) const;

  const ClientOptions options_;
  const std::shared_ptr<rpc::Channel> channel_;
  const std::unique_ptr<KeyValue::Stub> stub_;
};

// One call of Load. One that is not finished is called off; what was sent may
// have been set. Thread rule: one thread at a time.
class Client::Loading {
 public:
  // `value_bytes`: of all values together, for the deadline. `client` must
  // outlive this object.
  Loading(Client& client, uint64_t value_bytes);

  // As Client::Put, but returns when the value is on its way. False: the call
  // is over; Finish says why.
  bool Put(std::string_view key, rpc::BufferChain value);

  // Once.
  absl::StatusOr<LoadSummary> Finish();

 private:
  Client& client_;
  rpc::ClientContext context_;
  LoadSummary summary_;
  std::unique_ptr<rpc::ClientWriter<LoadRequest>> writer_;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_CLIENT_H_
