// Credentials of channels and of listening ports.
//
// RDMA connections carry no encryption. The software device admits only
// processes of the same user, by the kernel's word (SO_PEERCRED), unless it is
// told otherwise; on a fabric, whoever reaches the port may call. So there is
// one kind for now, with gRPC's name for it.
//
// Thread rule: immutable.
#ifndef VERBENA_RPC_CREDENTIALS_H_
#define VERBENA_RPC_CREDENTIALS_H_

#include <memory>
#include <string>

namespace rpc {

class ChannelCredentials {
 public:
  virtual ~ChannelCredentials() = default;
};

class ServerCredentials {
 public:
  virtual ~ServerCredentials() = default;
};

// What a call says of its user, in gRPC. There are none to be had: no
// connection here is secret enough for them.
class CallCredentials {
 public:
  virtual ~CallCredentials() = default;
  virtual std::string DebugString() { return ""; }
};

std::shared_ptr<ChannelCredentials> InsecureChannelCredentials();
std::shared_ptr<ServerCredentials> InsecureServerCredentials();

}  // namespace rpc

#endif  // VERBENA_RPC_CREDENTIALS_H_
