// The service of parcels.proto by each of the server's APIs: what a test says
// of handlers is to hold for all of them.
//
//   std::unique_ptr<ServedParcels> parcels = ServeParcels(ServerApi::kQueue);
//   parcels->Register(builder);
//   ... BuildAndStart ...
//   parcels->Begin();
//
// Unary answers with the request's code and 1, Upload with the number of
// requests, Download with two responses, and Chat gives each request back.
// Where client metadata has "early", initial metadata is sent first, and alone.
//
// Thread rule: services are thread-safe, the rest has one thread.
#ifndef VERBENA_TESTS_E2E_PARCELS_BY_API_H_
#define VERBENA_TESTS_E2E_PARCELS_BY_API_H_

#include <memory>
#include <string>

#include "rpc/rpc.h"

namespace e2e {

enum class ServerApi { kBlocking, kCallback, kQueue, kCoroutine, kGeneric };

inline constexpr ServerApi kAllServerApis[] = {
    ServerApi::kBlocking, ServerApi::kCallback, ServerApi::kQueue,
    ServerApi::kCoroutine, ServerApi::kGeneric};

std::string NameOf(ServerApi api);

// Serves one server. To be destroyed when that has shut down.
class ServedParcels {
 public:
  virtual ~ServedParcels() = default;
  virtual void Register(rpc::ServerBuilder& builder) = 0;
  // The server runs. By queue, one call of each kind is served.
  virtual void Begin() {}
  // The server has shut down. Returns when what serves has ended, too, which
  // may outlive its calls.
  virtual void End() {}
};

std::unique_ptr<ServedParcels> ServeParcels(ServerApi api);

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_PARCELS_BY_API_H_
