#include "tests/software/endpoint.h"

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "gtest/gtest.h"
#include "rdma_transport/software/software_provider.h"

namespace rdma::soft {

bool Until(const std::function<bool()>& done,
           const std::function<void()>& turn) {
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    turn();
  }
  return true;
}

int CountDescriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

int CountMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:verbena") != std::string::npos) ++count;
  }
  return count;
}

Endpoint::Endpoint(const DeviceOptions& options)
    : provider_(MakeSoftwareProvider()) {
  device_ = *provider_->Open("soft0", options);
  pd_ = device_->AllocPd();
  cq_ = device_->CreateCq(4096, nullptr, nullptr, 0);
  buffer_ = static_cast<char*>(
      device_->AllocateMemory(kBufferBytes, MemoryUse::kRemoteWritable));
  mr_ = device_->RegMr(pd_, buffer_, kBufferBytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  manager_ = *device_->CreateConnectionManager();
}

Endpoint::~Endpoint() {
  while (!qps_.empty()) DestroyQp(qps_.back());
  manager_.reset();
  EXPECT_EQ(device_->DestroyCq(cq_), 0);
  EXPECT_EQ(device_->DeregMr(mr_), 0);
  device_->FreeMemory(buffer_, kBufferBytes);
  EXPECT_EQ(device_->DeallocPd(pd_), 0);
}

ibv_sge Endpoint::Sge(size_t offset, uint32_t bytes) const {
  return {reinterpret_cast<uint64_t>(buffer_) + offset, bytes, mr_->lkey};
}

SocketAddress Endpoint::Listen() {
  const auto id = manager_->Listen(*SocketAddress::FromNumeric("127.0.0.1", 0),
                                   64, nullptr);
  EXPECT_TRUE(id.ok()) << id.status();
  return (*id)->local_address();
}

ibv_qp* Endpoint::CreateQp() {
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = kDepth,
              .max_recv_wr = kDepth,
              .max_send_sge = 4,
              .max_recv_sge = 4,
              .max_inline_data = 256};
  qps_.push_back(device_->CreateQp(pd_, &init));
  return qps_.back();
}

ibv_qp* Endpoint::Connect(const SocketAddress& address) {
  ibv_qp* const qp = CreateQp();
  const auto id = manager_->Connect(address, qp, {.rnr_retry_count = 7},
                                    absl::Seconds(10), qp);
  EXPECT_TRUE(id.ok()) << id.status();
  return qp;
}

ibv_qp* Endpoint::Accept() {
  const auto request = Await(CmEvent::Type::kConnectRequest);
  if (!request) return nullptr;
  ibv_qp* const qp = CreateQp();
  const absl::Status accepted =
      manager_->Accept(request->id, qp, {.rnr_retry_count = 7});
  EXPECT_TRUE(accepted.ok()) << accepted;
  request->id->context = qp;
  return qp;
}

void Endpoint::DestroyQp(ibv_qp* qp) {
  qps_.erase(std::find(qps_.begin(), qps_.end(), qp));
  EXPECT_EQ(device_->DestroyQp(qp), 0);
}

std::optional<CmEvent> Endpoint::Await(CmEvent::Type type) {
  std::optional<CmEvent> event;
  const bool came = Until([&] {
    event = manager_->GetEvent();
    return event.has_value() && event->type == type;
  });
  EXPECT_TRUE(came) << "no event of type " << static_cast<int>(type);
  return came ? event : std::nullopt;
}

std::optional<ibv_wc> Endpoint::AwaitCompletion() {
  ibv_wc completion;
  if (!Until([&] { return ibv_poll_cq(cq_, 1, &completion) == 1; })) {
    ADD_FAILURE() << "no completion came";
    return std::nullopt;
  }
  return completion;
}

int Endpoint::PostReceive(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge) {
  ibv_sge copy = sge;
  ibv_recv_wr wr = {wr_id, nullptr, &copy, 1};
  ibv_recv_wr* bad;
  return ibv_post_recv(qp, &wr, &bad);
}

int Endpoint::PostSend(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge,
                       unsigned int flags) {
  ibv_sge copy = sge;
  ibv_send_wr wr = {};
  wr.wr_id = wr_id;
  wr.sg_list = &copy;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = flags;
  ibv_send_wr* bad;
  return ibv_post_send(qp, &wr, &bad);
}

int Endpoint::PostRead(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge,
                       uint64_t address, uint32_t rkey) {
  ibv_sge copy = sge;
  ibv_send_wr wr = {};
  wr.wr_id = wr_id;
  wr.sg_list = &copy;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {address, rkey};
  ibv_send_wr* bad;
  return ibv_post_send(qp, &wr, &bad);
}

int Endpoint::PostWrite(ibv_qp* qp, uint64_t wr_id, const ibv_sge& sge,
                        uint64_t address, uint32_t rkey) {
  ibv_sge copy = sge;
  ibv_send_wr wr = {};
  wr.wr_id = wr_id;
  wr.sg_list = &copy;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {address, rkey};
  ibv_send_wr* bad;
  return ibv_post_send(qp, &wr, &bad);
}

}  // namespace rdma::soft
