// The default health checking service: what is said of services, and
// grpc.health.v1.Health, which clients ask. See
// health_check_service_interface.h and proto/grpc/health/.
//
// A watch is a reactor: it costs no thread. It has at most one message on the
// way, so that one who does not read hears of the latest status once he reads
// again, not of each that there was.
//
// Thread rule: any thread. No lock is held while a watch writes or ends.
#ifndef VERBENA_RPC_EXT_DEFAULT_HEALTH_CHECK_SERVICE_H_
#define VERBENA_RPC_EXT_DEFAULT_HEALTH_CHECK_SERVICE_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/health_check_service_interface.h"
#include "rpc/service.h"

namespace rpc {

class DefaultHealthCheckService final : public HealthCheckServiceInterface,
                                        public Service {
 public:
  // Of a request; a longer one is refused.
  static constexpr size_t kMaxServiceNameBytes = 200;

  DefaultHealthCheckService();
  // REQUIRES: its server, if any, has shut down.
  ~DefaultHealthCheckService() override;

  void SetServingStatus(const std::string& service_name, bool serving) override;
  void SetServingStatus(bool serving) override;
  void Shutdown() override;

 private:
  class Watch;
  class WatchHandler;

  // With the numbers of the protocol.
  enum class ServingStatus { kServing = 1, kNotServing = 2, kNotKnown = 3 };

  // A service that is known, or that somebody waits for.
  struct Watched {
    ServingStatus status = ServingStatus::kNotKnown;
    std::set<Watch*> watches;
  };

  ServingStatus StatusOf(const std::string& service_name);
  // The watch begins, or is over.
  void Add(Watch* watch);
  void Remove(Watch* watch);
  // The server shuts down: all watches end, those that are to come at once.
  void EndWatches();

  // Adds those that are to write it to `writers`.
  void SetStatus(Watched& watched, ServingStatus status,
                 std::vector<Watch*>& writers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetStatusOfAll(ServingStatus status, std::vector<Watch*>& writers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;  // nothing serves again
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Watched> services_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc

#endif  // VERBENA_RPC_EXT_DEFAULT_HEALTH_CHECK_SERVICE_H_
