// One end of the connections of a test: a device and the objects made of it.
//
//   Region buffer = side.Allocate(4096);
//   ibv_qp* qp = side.CreateQp({.max_send_wr = 8});
//
// A side owns what it creates and destroys what is left at its end, in the
// reverse order of dependence; a test that wants to see something die earlier
// destroys it through the side. Every destruction must succeed: a device that
// says busy has lost count.
//
// Thread rule: one thread, as the pump that it feeds.
#ifndef VERBENA_TESTS_CONFORMANCE_SIDE_H_
#define VERBENA_TESTS_CONFORMANCE_SIDE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "rdma_transport/provider/provider.h"
#include "tests/conformance/pump.h"

namespace rdma::conformance {

// Everything that a peer may do to memory.
inline constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
    IBV_ACCESS_REMOTE_ATOMIC;

// Memory of a device and its registration. Movable; may be empty.
class Region {
 public:
  Region() = default;
  // Registers `bytes` of fresh memory. A test that gets an empty region has
  // failed already.
  Region(Device* device, ibv_pd* pd, size_t bytes, int access, MemoryUse use);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  bool empty() const { return memory_ == nullptr; }
  uint8_t* data() const { return memory_; }
  size_t size() const { return bytes_; }
  ibv_mr* mr() const { return mr_; }
  uint32_t lkey() const { return mr_->lkey; }
  uint32_t rkey() const { return mr_->rkey; }

  // The address of a byte as work requests name it, and a range as an SGE.
  uint64_t addr(size_t offset = 0) const;
  ibv_sge sge(size_t offset, size_t length) const;
  ibv_sge sge() const { return sge(0, bytes_); }
  std::string_view bytes(size_t offset, size_t length) const;

  // Bytes that depend on `seed` and on their place.
  void Fill(uint32_t seed);
  void Clear();

  // What DeregMr returns; the memory stays. Once it succeeds the region has no
  // keys any more.
  int Deregister();

 private:
  void Release();

  Device* device_ = nullptr;
  uint8_t* memory_ = nullptr;
  size_t bytes_ = 0;
  ibv_mr* mr_ = nullptr;
};

struct QpOptions {
  uint32_t max_send_wr = 64;
  uint32_t max_recv_wr = 64;
  uint32_t max_send_sge = 4;
  uint32_t max_recv_sge = 4;
  uint32_t max_inline_data = 64;  // the device's own limit bounds it
  bool sq_sig_all = false;
  ibv_cq* send_cq = nullptr;  // the side's own
  ibv_cq* recv_cq = nullptr;  // the side's own
  ibv_srq* srq = nullptr;
  ibv_pd* pd = nullptr;  // the side's own
};

class Side {
 public:
  // `manager` or a CQ may be missing after a failure, which fails the test.
  Side(Device* device, Pump* pump);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side();

  Device& device() const { return *device_; }
  ibv_pd* pd() const { return pd_; }
  // The completion channel of both CQs.
  ibv_comp_channel* channel() const { return channel_; }
  ibv_cq* send_cq() const { return send_cq_; }
  ibv_cq* recv_cq() const { return recv_cq_; }
  ConnectionManager& manager() const { return *manager_; }
  // False after a failed construction.
  bool ok() const { return ok_; }

  Region Allocate(size_t bytes, int access = kAllAccess,
                  MemoryUse use = MemoryUse::kRemoteWritable);

  // Watched by the pump.
  ibv_cq* CreateCq(int depth, ibv_comp_channel* channel = nullptr,
                   void* context = nullptr);
  // `*max_wr` becomes what the device made of it.
  ibv_srq* CreateSrq(uint32_t* max_wr, uint32_t max_sge = 4);
  ibv_qp* CreateQp(const QpOptions& options);
  // As above, with the device's answer: the capabilities it gives.
  ibv_qp* CreateQp(const QpOptions& options, ibv_qp_cap* cap);

  void DestroyQp(ibv_qp* qp);
  void DestroySrq(ibv_srq* srq);
  void DestroyCq(ibv_cq* cq);
  // Destroys the manager with what is left of its ids. QPs first: see
  // provider.h.
  void DestroyManager();

 private:
  Device* device_;
  Pump* pump_;
  bool ok_ = false;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* send_cq_ = nullptr;
  ibv_cq* recv_cq_ = nullptr;
  std::unique_ptr<ConnectionManager> manager_;
  std::vector<ibv_qp*> qps_;
  std::vector<ibv_srq*> srqs_;
  std::vector<ibv_cq*> cqs_;
};

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_SIDE_H_
