// How a server says whether it serves, for clients that ask by gRPC's health
// checking (grpc.health.v1.Health).
//
//   rpc::EnableDefaultHealthCheckService(true);
//   std::unique_ptr<rpc::Server> server = builder.BuildAndStart();
//   rpc::HealthCheckServiceInterface* health = server->GetHealthCheckService();
//   health->SetServingStatus("kv.Store", true);
//   ...
//   health->SetServingStatus(false);  // we are about to restart
//
// The default service knows the server as a whole, whose name is empty, as
// serving from the start, and of other services what it is told. Clients ask
// once (Check), or are told of each change (Watch), which costs no thread. When
// the server shuts down, the watches end, with CANCELLED: first tell them why,
// by Shutdown.
//
// Thread rule: of an interface's functions, that of its implementation; the
// default one's may be called from any thread.
#ifndef VERBENA_RPC_HEALTH_CHECK_SERVICE_INTERFACE_H_
#define VERBENA_RPC_HEALTH_CHECK_SERVICE_INTERFACE_H_

#include <string>

namespace rpc {

// The channel argument by which a server gets one of the user's own: a pointer
// to a HealthCheckServiceInterface, which the server takes over, or null for
// none. See ext/health_check_service_server_builder_option.h.
inline constexpr char kHealthCheckServiceInterfaceArg[] =
    "grpc.health_check_service_interface";

class HealthCheckServiceInterface {
 public:
  virtual ~HealthCheckServiceInterface() = default;

  // The service serves from now on, or does not. "package.Service"; one that
  // was not known so far is from then on.
  virtual void SetServingStatus(const std::string& service_name,
                                bool serving) = 0;
  // The same of all services that are known.
  virtual void SetServingStatus(bool serving) = 0;

  // None of them serves any more, whatever is said afterwards.
  virtual void Shutdown() {}
};

// Whether servers that are built from now on have the default health checking
// service. Not those with a HealthCheckServiceServerBuilderOption, and where
// the user registers an implementation of grpc.health.v1.Health, that is the
// one which clients reach. Default: no. Any thread.
void EnableDefaultHealthCheckService(bool enable);
bool DefaultHealthCheckServiceEnabled();

}  // namespace rpc

#endif  // VERBENA_RPC_HEALTH_CHECK_SERVICE_INTERFACE_H_
