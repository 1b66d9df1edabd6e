// How much a server or a channel may take; for SetResourceQuota of
// ServerBuilder and ChannelArguments.
//
//   rpc::ResourceQuota quota;
//   quota.Resize(256 << 20).SetMaxThreads(32);
//   builder.SetResourceQuota(quota);
//
// Other than in gRPC, each server or channel has what the quota says for
// itself, and what it says at that moment: it is one way to write
// "verbena.memory_budget_bytes" and "verbena.handler_threads".
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_RESOURCE_QUOTA_H_
#define VERBENA_RPC_RESOURCE_QUOTA_H_

#include <cstddef>
#include <optional>
#include <string>

namespace rpc {

class ResourceQuota final {
 public:
  ResourceQuota() = default;
  // The name has no meaning.
  explicit ResourceQuota(const std::string& /*name*/) {}
  ResourceQuota(const ResourceQuota&) = delete;
  ResourceQuota& operator=(const ResourceQuota&) = delete;

  // Bytes for messages and attachments beyond one frame. Default: half of the
  // machine's memory.
  ResourceQuota& Resize(size_t new_size) {
    bytes_ = new_size;
    return *this;
  }
  // Threads for handlers of the blocking API that block. Default: 256.
  ResourceQuota& SetMaxThreads(int new_max_threads) {
    max_threads_ = new_max_threads;
    return *this;
  }

  std::optional<size_t> bytes() const { return bytes_; }
  std::optional<int> max_threads() const { return max_threads_; }

 private:
  std::optional<size_t> bytes_;
  std::optional<int> max_threads_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_RESOURCE_QUOTA_H_
