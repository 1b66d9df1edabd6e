#include "rpc/auth_context.h"

namespace rpc::internal {
namespace {

class Unauthenticated final : public AuthContext {
 public:
  bool IsPeerAuthenticated() const override { return false; }
  std::vector<string_ref> GetPeerIdentity() const override { return {}; }
  std::string GetPeerIdentityPropertyName() const override { return ""; }

  std::vector<string_ref> FindPropertyValues(
      const std::string& name) const override {
    std::vector<string_ref> values;
    for (const auto& [key, value] : properties_) {
      if (key == name) values.push_back(value);
    }
    return values;
  }
  AuthPropertyIterator begin() const override { return properties_.begin(); }
  AuthPropertyIterator end() const override { return properties_.end(); }

  void AddProperty(const std::string&, const string_ref&) override {}
  bool SetPeerIdentityPropertyName(const std::string&) override {
    return false;
  }

 private:
  const std::vector<AuthProperty> properties_ = {
      {"transport_security_type", "insecure"},
      {"security_level", "TSI_SECURITY_NONE"},
  };
};

}  // namespace

std::shared_ptr<const AuthContext> UnauthenticatedPeer() {
  static const auto* const peer =
      new std::shared_ptr<const AuthContext>(new Unauthenticated);
  return *peer;
}

}  // namespace rpc::internal
