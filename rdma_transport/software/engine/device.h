// A device of the verbs engine: rdma::Device, and the ops behind its
// ibv_context. What carries its packets is the fabric it is given.
//
//   struct ShmFabric : Fabric { ... };
//   absl::StatusOr<std::unique_ptr<EngineDevice>> device =
//       EngineDevice::Open("soft0", options, clock, seed, &fabric);
//
// Locking: with DeviceOptions::single_threaded_queues, CQs, QPs, SRQs and
// channels take no lock; the ops table without locks is used. Else every call
// that touches one of them takes the device's one queue mutex.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_DEVICE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/software/clock.h"
#include "rdma_transport/software/engine/async_events.h"
#include "rdma_transport/software/engine/device_segment.h"
#include "rdma_transport/software/engine/link_registry.h"
#include "rdma_transport/software/engine/memory_registry.h"
#include "rdma_transport/software/engine/queue_pair.h"

namespace rdma::soft {

class EngineDevice;

// What connects devices with each other.
class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual absl::StatusOr<std::unique_ptr<ConnectionManager>>
  CreateConnectionManager(EngineDevice* device) = 0;
};

class EngineDevice final : public Device {
 public:
  // `seed` chooses the first QP number. REQUIRES: `clock` outlives the device.
  static absl::StatusOr<std::unique_ptr<EngineDevice>> Open(
      std::string_view name, const DeviceOptions& options, Clock* clock,
      uint64_t seed, std::unique_ptr<Fabric> fabric);
  ~EngineDevice() override;

  ibv_context* context() override { return &context_; }
  std::string_view name() const override { return name_; }
  const ibv_device_attr& attributes() const override { return attributes_; }
  uint32_t max_inline_data() const override { return kMaxInlineBytes; }
  uint32_t useful_inline_data() const override { return kMaxInlineBytes; }
  bool cpus_read() const override { return true; }
  unsigned int past_caches_flag() const override { return kSendPastCaches; }
  uint32_t reserved_lkey() const override { return kReservedLkey; }
  bool reads_jointly() const override { return !options_.allow_other_users; }
  bool is_at_work(ibv_cq* cq) const override { return FromVerbs(cq)->busy(); }

  void* AllocateMemory(size_t bytes, MemoryUse use) override;
  void FreeMemory(void* memory, size_t bytes) override;

  ibv_pd* AllocPd() override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access) override;
  int DeregMr(ibv_mr* mr) override;

  ibv_comp_channel* CreateCompChannel() override;
  int DestroyCompChannel(ibv_comp_channel* channel) override;
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override;
  void AckCqEvents(ibv_cq* cq, unsigned int count) override;

  ibv_cq* CreateCq(int cqe, void* cq_context, ibv_comp_channel* channel,
                   int comp_vector) override;
  int ResizeCq(ibv_cq* cq, int cqe) override;
  int DestroyCq(ibv_cq* cq) override;

  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) override;
  int ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int mask) override;
  int QuerySrq(ibv_srq* srq, ibv_srq_attr* attr) override;
  int DestroySrq(ibv_srq* srq) override;

  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init) override;
  int DestroyQp(ibv_qp* qp) override;

  int GetAsyncEvent(ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event* event) override;

  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager()
      override;

  // --- For the fabric and the ops ---

  const DeviceOptions& options() const { return options_; }
  Clock* clock() const { return clock_; }
  const DeviceSegment& segment() const { return segment_; }
  MemoryRegistry& memory() { return memory_; }
  // The QP of this number, or null where it is gone.
  QueuePair* FindQp(uint32_t number);
  // Held while a queue object is used, where the device was opened for that.
  std::unique_lock<std::mutex> LockQueues() {
    return options_.single_threaded_queues
               ? std::unique_lock<std::mutex>()
               : std::unique_lock<std::mutex>(queue_mutex_);
  }

 private:
  struct Context : ibv_context {
    EngineDevice* device;
  };
  friend EngineDevice* DeviceOf(ibv_context* context);

  EngineDevice(std::string_view name, const DeviceOptions& options,
               Clock* clock, uint64_t seed, std::unique_ptr<Fabric> fabric,
               DeviceSegment segment, std::unique_ptr<AsyncEvents> events);

  void SetUpContext();
  // The number of a free CQ line, or -1.
  int TakeCqLine();
  uint32_t TakeQpNumber();

  const std::string name_;
  const DeviceOptions options_;
  Clock* const clock_;
  const std::unique_ptr<Fabric> fabric_;
  const DeviceSegment segment_;
  const std::unique_ptr<AsyncEvents> async_events_;
  LinkRegistry links_;
  MemoryRegistry memory_;
  ibv_device device_ = {};
  Context context_ = {};
  ibv_device_attr attributes_ = {};

  std::mutex queue_mutex_;

  std::mutex names_mutex_;
  uint32_t next_cq_line_ = 0;            // guarded by names_mutex_
  std::vector<uint32_t> free_cq_lines_;  // guarded by names_mutex_
  uint32_t next_qp_num_;                 // guarded by names_mutex_
  // Guarded by names_mutex_; null for a number that is being given out.
  std::unordered_map<uint32_t, QueuePair*> qps_;
};

inline EngineDevice* DeviceOf(ibv_context* context) {
  return static_cast<EngineDevice::Context*>(context)->device;
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_DEVICE_H_
