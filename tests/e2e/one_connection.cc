#include "tests/e2e/one_connection.h"

namespace e2e {

OneConnection::OneConnection(rpc::Service* service,
                             const Arguments& server_arguments,
                             const Arguments& client_arguments)
    : server_(server_arguments, ServerUri(), service) {
  if (!server_.ok()) return;
  client_ = std::make_unique<Client>(server_.address(), client_arguments);
  channel_ = client_->shared_channel();
  peer_ = client_->Observe().peer();
}

testing::AssertionResult OneConnection::ok() const {
  if (!server_.ok()) return testing::AssertionFailure() << server_.status();
  if (peer_.empty()) return testing::AssertionFailure() << "no connection";
  return testing::AssertionSuccess();
}

testing::AssertionResult OneConnection::IsAlive() const {
  const std::string peer = client_->Observe().peer();
  if (peer == peer_) return testing::AssertionSuccess() << peer;
  return testing::AssertionFailure()
         << "the first connection was " << peer_ << ", now it is " << peer;
}

}  // namespace e2e
