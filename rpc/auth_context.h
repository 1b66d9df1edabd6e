// Who the peer of a call is, as far as the connection proves it: nothing here.
// RDMA connections carry no credentials, so that every peer is unauthenticated,
// and a context says so.
//
//   if (!context->auth_context()->IsPeerAuthenticated()) ...
//
// Thread rule: what contexts give is immutable.
#ifndef VERBENA_RPC_AUTH_CONTEXT_H_
#define VERBENA_RPC_AUTH_CONTEXT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/metadata.h"

namespace rpc {

using AuthProperty = std::pair<string_ref, string_ref>;
using AuthPropertyIterator = std::vector<AuthProperty>::const_iterator;

class AuthContext {
 public:
  virtual ~AuthContext() = default;

  virtual bool IsPeerAuthenticated() const = 0;
  // The values of the property that says who the peer is; empty where it is not
  // authenticated.
  virtual std::vector<string_ref> GetPeerIdentity() const = 0;
  virtual std::string GetPeerIdentityPropertyName() const = 0;

  virtual std::vector<string_ref> FindPropertyValues(
      const std::string& name) const = 0;
  virtual AuthPropertyIterator begin() const = 0;
  virtual AuthPropertyIterator end() const = 0;

  // Without effect.
  virtual void AddProperty(const std::string& key, const string_ref& value) = 0;
  virtual bool SetPeerIdentityPropertyName(const std::string& name) = 0;
};

namespace internal {

// With the properties that gRPC gives for insecure credentials:
// transport_security_type is "insecure", security_level "TSI_SECURITY_NONE".
std::shared_ptr<const AuthContext> UnauthenticatedPeer();

}  // namespace internal
}  // namespace rpc

#endif  // VERBENA_RPC_AUTH_CONTEXT_H_
