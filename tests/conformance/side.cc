#include "tests/conformance/side.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace rdma::conformance {
namespace {

constexpr int kCqDepth = 1024;

void ExpectDestroyed(std::string_view call, int error) {
  EXPECT_EQ(error, 0) << call << ": " << std::strerror(error);
}

}  // namespace

Region::Region(Device* device, ibv_pd* pd, size_t bytes, int access,
               MemoryUse use)
    : device_(device), bytes_(bytes) {
  memory_ = static_cast<uint8_t*>(device->AllocateMemory(bytes, use));
  if (memory_ == nullptr) {
    ADD_FAILURE() << "AllocateMemory of " << bytes
                  << " bytes: " << std::strerror(errno);
    return;
  }
  mr_ = device->RegMr(pd, memory_, bytes, access);
  if (mr_ != nullptr) return;
  ADD_FAILURE() << "RegMr of " << bytes << " bytes, access " << access << ": "
                << std::strerror(errno);
  Release();
}

Region::Region(Region&& other) noexcept { *this = std::move(other); }

Region& Region::operator=(Region&& other) noexcept {
  if (this == &other) return *this;
  Release();
  device_ = other.device_;
  memory_ = std::exchange(other.memory_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  mr_ = std::exchange(other.mr_, nullptr);
  return *this;
}

Region::~Region() { Release(); }

void Region::Release() {
  if (mr_ != nullptr) ExpectDestroyed("DeregMr", Deregister());
  if (memory_ != nullptr) device_->FreeMemory(memory_, bytes_);
  memory_ = nullptr;
}

int Region::Deregister() {
  const int error = device_->DeregMr(mr_);
  if (error == 0) mr_ = nullptr;
  return error;
}

uint64_t Region::addr(size_t offset) const {
  return reinterpret_cast<uintptr_t>(memory_) + offset;
}

ibv_sge Region::sge(size_t offset, size_t length) const {
  return {.addr = addr(offset),
          .length = static_cast<uint32_t>(length),
          .lkey = lkey()};
}

std::string_view Region::bytes(size_t offset, size_t length) const {
  return {reinterpret_cast<const char*>(memory_) + offset, length};
}

void Region::Fill(uint32_t seed) {
  // A multiplicative generator, eight bytes a step: no two seeds or places look
  // alike, and a longer region starts like a shorter one.
  uint64_t state = seed * uint64_t{0x9e3779b97f4a7c15} + 1;
  for (size_t i = 0; i < bytes_; i += sizeof(state)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t word = state ^ (state >> 29);
    std::memcpy(memory_ + i, &word, std::min(sizeof(word), bytes_ - i));
  }
}

void Region::Clear() { std::memset(memory_, 0, bytes_); }

Side::Side(Device* device, Pump* pump) : device_(device), pump_(pump) {
  pd_ = device->AllocPd();
  channel_ = device->CreateCompChannel();
  if (pd_ == nullptr || channel_ == nullptr) {
    ADD_FAILURE() << "AllocPd or CreateCompChannel: " << std::strerror(errno);
    return;
  }
  send_cq_ = CreateCq(kCqDepth, channel_);
  recv_cq_ = CreateCq(kCqDepth, channel_);
  absl::StatusOr<std::unique_ptr<ConnectionManager>> manager =
      device->CreateConnectionManager();
  if (!manager.ok()) {
    ADD_FAILURE() << "CreateConnectionManager: " << manager.status();
    return;
  }
  manager_ = *std::move(manager);
  pump_->Watch(manager_.get());
  ok_ = send_cq_ != nullptr && recv_cq_ != nullptr;
}

Side::~Side() {
  while (!qps_.empty()) DestroyQp(qps_.back());
  DestroyManager();
  while (!srqs_.empty()) DestroySrq(srqs_.back());
  while (!cqs_.empty()) DestroyCq(cqs_.back());
  if (channel_ != nullptr) {
    ExpectDestroyed("DestroyCompChannel",
                    device_->DestroyCompChannel(channel_));
  }
  if (pd_ != nullptr) ExpectDestroyed("DeallocPd", device_->DeallocPd(pd_));
}

Region Side::Allocate(size_t bytes, int access, MemoryUse use) {
  return Region(device_, pd_, bytes, access, use);
}

ibv_cq* Side::CreateCq(int depth, ibv_comp_channel* channel, void* context) {
  ibv_cq* cq = device_->CreateCq(depth, context, channel, 0);
  if (cq == nullptr) {
    ADD_FAILURE() << "CreateCq of " << depth << ": " << std::strerror(errno);
    return nullptr;
  }
  cqs_.push_back(cq);
  pump_->Watch(cq);
  return cq;
}

ibv_srq* Side::CreateSrq(uint32_t* max_wr, uint32_t max_sge) {
  ibv_srq_init_attr init = {};
  init.attr.max_wr = *max_wr;
  init.attr.max_sge = max_sge;
  ibv_srq* srq = device_->CreateSrq(pd_, &init);
  if (srq == nullptr) {
    ADD_FAILURE() << "CreateSrq of " << *max_wr << ": " << std::strerror(errno);
    return nullptr;
  }
  *max_wr = init.attr.max_wr;
  srqs_.push_back(srq);
  return srq;
}

ibv_qp* Side::CreateQp(const QpOptions& options) {
  ibv_qp_cap cap;
  return CreateQp(options, &cap);
}

ibv_qp* Side::CreateQp(const QpOptions& options, ibv_qp_cap* cap) {
  ibv_qp_init_attr init = {};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = options.send_cq != nullptr ? options.send_cq : send_cq_;
  init.recv_cq = options.recv_cq != nullptr ? options.recv_cq : recv_cq_;
  init.srq = options.srq;
  init.sq_sig_all = options.sq_sig_all;
  init.cap.max_send_wr = options.max_send_wr;
  init.cap.max_send_sge = options.max_send_sge;
  init.cap.max_inline_data =
      std::min(options.max_inline_data, device_->max_inline_data());
  if (options.srq == nullptr) {
    init.cap.max_recv_wr = options.max_recv_wr;
    init.cap.max_recv_sge = options.max_recv_sge;
  }
  ibv_qp* qp =
      device_->CreateQp(options.pd != nullptr ? options.pd : pd_, &init);
  if (qp == nullptr) {
    ADD_FAILURE() << "CreateQp: " << std::strerror(errno);
    return nullptr;
  }
  *cap = init.cap;
  qps_.push_back(qp);
  return qp;
}

void Side::DestroyQp(ibv_qp* qp) {
  ExpectDestroyed("DestroyQp", device_->DestroyQp(qp));
  std::erase(qps_, qp);
}

void Side::DestroySrq(ibv_srq* srq) {
  ExpectDestroyed("DestroySrq", device_->DestroySrq(srq));
  std::erase(srqs_, srq);
}

void Side::DestroyCq(ibv_cq* cq) {
  pump_->Unwatch(cq);
  ExpectDestroyed("DestroyCq", device_->DestroyCq(cq));
  std::erase(cqs_, cq);
}

void Side::DestroyManager() {
  if (manager_ == nullptr) return;
  pump_->Unwatch(manager_.get());
  manager_.reset();
}

}  // namespace rdma::conformance
