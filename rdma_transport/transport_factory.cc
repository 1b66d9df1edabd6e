// Registers the transport for rdma:// addresses with rpc/: linking
// //rdma_transport is all that a program does to use it.
#include <memory>
#include <string_view>
#include <utility>

#include "rdma_transport/address.h"
#include "rdma_transport/client_transport.h"
#include "rdma_transport/connection_pool.h"
#include "rdma_transport/server_transport.h"
#include "rpc/transport.h"

namespace rdma {
namespace {

class Factory final : public rpc::TransportFactory {
 public:
  std::string_view scheme() const override { return "rdma"; }

  absl::StatusOr<std::unique_ptr<rpc::ClientTransport>> CreateClient(
      std::string_view address, const rpc::TransportOptions& options) override {
    absl::StatusOr<HostPort> host_port = ParseAddress(address);
    if (!host_port.ok()) return host_port.status();
    absl::StatusOr<std::shared_ptr<Endpoint>> endpoint =
        ConnectionPool::Get(*host_port, options);
    if (!endpoint.ok()) return endpoint.status();
    return std::make_unique<ClientTransport>(*std::move(endpoint), options);
  }

  absl::StatusOr<std::unique_ptr<rpc::ServerTransport>> CreateServer(
      const rpc::TransportOptions& options) override {
    return ServerTransport::Create(options);
  }
};

[[maybe_unused]] const bool registered = [] {
  static auto* const factory = new Factory;
  rpc::TransportFactory::Register(factory);
  return true;
}();

}  // namespace
}  // namespace rdma
