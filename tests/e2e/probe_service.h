// The handlers of the end-to-end tests' service.
//
// Thread-safe, as services are.
#ifndef VERBENA_TESTS_E2E_PROBE_SERVICE_H_
#define VERBENA_TESTS_E2E_PROBE_SERVICE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/rpc.h"
#include "tests/e2e/probe.rpc.pb.h"

namespace e2e {

class ProbeService final : public Probe::Service {
 public:
  // What Produce sends: TestPattern of the size and these seeds.
  static constexpr uint64_t kMessageSeed = 1;
  static constexpr uint64_t kAttachmentSeed = 2;

  rpc::Status Echo(rpc::ServerContext* context, const Blob* request,
                   Blob* response) override;
  rpc::Status Consume(rpc::ServerContext* context, const Blob* request,
                      Summary* response) override;
  rpc::Status Produce(rpc::ServerContext* context, const Sizes* request,
                      Blob* response) override;
  rpc::Status Block(rpc::ServerContext* context, const Blob* request,
                    Nothing* response) override;
  rpc::Status ReleaseBlocked(rpc::ServerContext* context,
                             const Nothing* request,
                             Nothing* response) override;
  rpc::Status Sleep(rpc::ServerContext* context, const Nap* request,
                    Nothing* response) override;
  rpc::Status Observe(rpc::ServerContext* context, const Nothing* request,
                      Observation* response) override;

 private:
  absl::Mutex mutex_;
  absl::CondVar released_;
  int64_t releases_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t blocked_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cut_off_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_PROBE_SERVICE_H_
