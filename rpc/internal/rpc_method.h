// A method of a service, as a stub or a service knows it. Used by generated
// code.
//
// Thread rule: immutable.
#ifndef VERBENA_RPC_INTERNAL_RPC_METHOD_H_
#define VERBENA_RPC_INTERNAL_RPC_METHOD_H_

#include <cstdint>
#include <memory>

#include "rpc/channel_interface.h"
#include "rpc/internal/message_functions.h"

namespace rpc::internal {

class RpcMethod {
 public:
  enum RpcType {
    NORMAL_RPC = 0,  // one message each way
    CLIENT_STREAMING,
    SERVER_STREAMING,
    BIDI_STREAMING,
  };

  // `name` is the path, "/package.Service/Method", in static storage, as are
  // `messages`. A service has no channel.
  RpcMethod(const char* name, RpcType type,
            const MethodMessages& messages = kAnyMessages)
      : name_(name), type_(type), messages_(&messages) {}
  RpcMethod(const char* name, RpcType type,
            const std::shared_ptr<ChannelInterface>& channel)
      : RpcMethod(name, nullptr, type, channel) {}
  RpcMethod(const char* name, const char* suffix_for_stats, RpcType type,
            const std::shared_ptr<ChannelInterface>& channel,
            const MethodMessages& messages = kAnyMessages)
      : name_(name),
        suffix_for_stats_(suffix_for_stats),
        type_(type),
        messages_(&messages),
        number_(channel->RegisterMethod(name)),
        target_(&channel->call_target()) {}

  const char* name() const { return name_; }
  const char* suffix_for_stats() const { return suffix_for_stats_; }
  RpcType method_type() const { return type_; }
  const MethodMessages& messages() const { return *messages_; }
  // What the channel calls it; see ClientTransport::RegisterMethod.
  uint32_t number() const { return number_; }
  // What calls on that channel go through; lives as long as it. REQUIRES: the
  // method was made with one.
  const CallTarget& target() const { return *target_; }

 private:
  const char* const name_;
  const char* const suffix_for_stats_ = nullptr;
  const RpcType type_;
  const MethodMessages* const messages_;
  const uint32_t number_ = 0;
  const CallTarget* const target_ = nullptr;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_RPC_METHOD_H_
