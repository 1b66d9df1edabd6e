// One side of connections on the software device, for tests that need more than
// the conformance suite's fixture shows: raw sockets, other processes, counts.
//
//   Endpoint server, client;
//   const SocketAddress address = server.Listen();
//   ibv_qp* qp = client.Connect(address);
//   ibv_qp* accepted = server.Accept();
//   client.AwaitEstablished();
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_SOFTWARE_ENDPOINT_H_
#define VERBENA_TESTS_SOFTWARE_ENDPOINT_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rdma_transport/provider/provider.h"

namespace rdma::soft {

// Calls `done` until it is true, for ten seconds at most. `turn` is called in
// between.
bool Until(
    const std::function<bool()>& done,
    const std::function<void()>& turn = [] {});

// Of this process.
int CountDescriptors();
int CountMappings();

class Endpoint {
 public:
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  static constexpr uint32_t kDepth = 64;

  explicit Endpoint(const DeviceOptions& options = {
                        .single_threaded_queues = true});
  ~Endpoint();

  Device& device() { return *device_; }
  ConnectionManager& manager() { return *manager_; }
  ibv_cq* cq() { return cq_; }
  ibv_pd* pd() { return pd_; }
  char* buffer() { return buffer_; }
  ibv_mr* mr() { return mr_; }
  ibv_sge Sge(size_t offset, uint32_t bytes) const;

  SocketAddress Listen();
  ibv_qp* CreateQp();
  // Begins to connect a new QP.
  ibv_qp* Connect(const SocketAddress& address);
  // Waits for a request, and accepts it with a new QP.
  ibv_qp* Accept();
  void DestroyQp(ibv_qp* qp);

  // Waits for an event of this type, and drops others.
  std::optional<CmEvent> Await(CmEvent::Type type);
  // Waits for a completion.
  std::optional<ibv_wc> AwaitCompletion();

  int PostReceive(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge);
  int PostSend(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge,
               unsigned int flags = IBV_SEND_SIGNALED);
  int PostRead(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge, uint64_t address,
               uint32_t rkey);
  int PostWrite(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge,
                uint64_t address, uint32_t rkey);

 private:
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Device> device_;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  char* buffer_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::unique_ptr<ConnectionManager> manager_;
  std::vector<ibv_qp*> qps_;
};

}  // namespace rdma::soft

#endif  // VERBENA_TESTS_SOFTWARE_ENDPOINT_H_
