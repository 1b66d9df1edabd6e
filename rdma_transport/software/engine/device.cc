#include "rdma_transport/software/engine/device.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/engine/completion_channel.h"
#include "rdma_transport/software/engine/completion_queue.h"
#include "rdma_transport/software/engine/ops.h"
#include "rdma_transport/software/engine/receive_queue.h"
#include "rdma_transport/software/log.h"

namespace rdma::soft {
namespace {

constexpr int kMaxQps = 1 << 16;
constexpr int kMaxQueueDepth = 1 << 15;
constexpr int kMaxCqEntries = 1 << 20;
constexpr uint32_t kQpNumMask = 0xffffff;

ibv_device_attr MakeAttributes() {
  ibv_device_attr attributes = {};
  std::snprintf(attributes.fw_ver, sizeof(attributes.fw_ver), "1.0");
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 4096;
  attributes.max_qp = kMaxQps;
  attributes.max_qp_wr = kMaxQueueDepth;
  attributes.device_cap_flags =
      IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
      IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
      IBV_DEVICE_CURR_QP_STATE_MOD;
  attributes.max_sge = attributes.max_sge_rd = kMaxSges;
  attributes.max_cq = kMaxCompletionQueues;
  attributes.max_cqe = kMaxCqEntries;
  attributes.max_mr = kMaxKeys - 1;
  attributes.max_mw = kMaxKeys - 1;
  attributes.max_pd = 1 << 16;
  attributes.max_qp_rd_atom = kMaxReads;
  attributes.max_qp_init_rd_atom = kMaxReads;
  attributes.max_res_rd_atom = kMaxReads * 1024;
  attributes.atomic_cap = IBV_ATOMIC_GLOB;
  attributes.max_srq = 1 << 16;
  attributes.max_srq_wr = kMaxQueueDepth * 8;
  attributes.max_srq_sge = kMaxSges;
  attributes.max_pkeys = 1;
  attributes.phys_port_cnt = 1;
  return attributes;
}

int CheckCapabilities(const ibv_qp_init_attr& init) {
  const ibv_qp_cap& cap = init.cap;
  const bool own_receives = init.srq == nullptr;
  const auto depth = static_cast<uint32_t>(kMaxQueueDepth);
  if (init.send_cq == nullptr || init.recv_cq == nullptr ||
      cap.max_send_wr > depth || cap.max_send_sge > kMaxSges ||
      cap.max_inline_data > kMaxInlineBytes ||
      (own_receives &&
       (cap.max_recv_wr > depth || cap.max_recv_sge > kMaxSges))) {
    return EINVAL;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EngineDevice>> EngineDevice::Open(
    std::string_view name, const DeviceOptions& options, Clock* clock,
    uint64_t seed, std::unique_ptr<Fabric> fabric) {
  absl::StatusOr<DeviceSegment> segment = DeviceSegment::Create();
  if (!segment.ok()) return segment.status();
  absl::StatusOr<std::unique_ptr<AsyncEvents>> events = AsyncEvents::Create();
  if (!events.ok()) return events.status();
  return std::unique_ptr<EngineDevice>(
      new EngineDevice(name, options, clock, seed, std::move(fabric),
                       *std::move(segment), *std::move(events)));
}

EngineDevice::EngineDevice(std::string_view name, const DeviceOptions& options,
                           Clock* clock, uint64_t seed,
                           std::unique_ptr<Fabric> fabric,
                           DeviceSegment segment,
                           std::unique_ptr<AsyncEvents> events)
    : name_(name),
      options_(options),
      clock_(clock),
      fabric_(std::move(fabric)),
      segment_(std::move(segment)),
      async_events_(std::move(events)),
      memory_(segment_.keys(), &links_, clock),
      attributes_(MakeAttributes()),
      next_qp_num_(static_cast<uint32_t>(seed) & 0xffff) {
  SetUpContext();
}

EngineDevice::~EngineDevice() { pthread_mutex_destroy(&context_.mutex); }

void EngineDevice::SetUpContext() {
  device_.node_type = IBV_NODE_CA;
  device_.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(device_.name, sizeof(device_.name), "%s", name_.c_str());
  std::snprintf(device_.dev_name, sizeof(device_.dev_name), "%s",
                name_.c_str());
  context_.device = this;
  ibv_context& context = context_;
  context.device = &device_;
  context.ops =
      MakeOps(options_.single_threaded_queues ? QueueLocking::kNone
                                              : QueueLocking::kDevice);
  context.cmd_fd = -1;
  context.async_fd = async_events_->fd();
  context.num_comp_vectors = 1;
  pthread_mutex_init(&context.mutex, nullptr);
}

// --- Memory ------------------------------------------------------------------

void* EngineDevice::AllocateMemory(size_t bytes, MemoryUse use) {
  if (use == MemoryUse::kJointReads && !reads_jointly()) {
    use = MemoryUse::kLocal;
  }
  const absl::StatusOr<std::byte*> memory =
      memory_.arenas().Allocate(bytes, use);
  if (memory.ok()) return *memory;
  Log(absl::StrCat("no memory region of ", bytes,
                   " bytes: ", std::string(memory.status().message())));
  errno = ENOMEM;
  return nullptr;
}

void EngineDevice::FreeMemory(void* memory, size_t) {
  const std::shared_ptr<Arena> arena = memory_.arenas().Remove(memory);
  if (arena != nullptr) links_.Withdraw(arena->id());
}

ibv_pd* EngineDevice::AllocPd() { return memory_.AllocPd(&context_); }

int EngineDevice::DeallocPd(ibv_pd* pd) {
  return memory_.DeallocPd(FromVerbs(pd));
}

ibv_mr* EngineDevice::RegMr(ibv_pd* pd, void* addr, size_t length, int access) {
  return memory_.RegMr(FromVerbs(pd), addr, length, access);
}

int EngineDevice::DeregMr(ibv_mr* mr) {
  return memory_.DeregMr(static_cast<MemoryRegion*>(mr));
}

// --- Completion --------------------------------------------------------------

ibv_comp_channel* EngineDevice::CreateCompChannel() {
  return CompletionChannel::Create(&context_, clock_).release();
}

int EngineDevice::DestroyCompChannel(ibv_comp_channel* channel) {
  const auto lock = LockQueues();
  if (channel->refcnt != 0) return EBUSY;
  delete FromVerbs(channel);
  return 0;
}

int EngineDevice::GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                             void** cq_context) {
  const auto lock = LockQueues();
  CompletionQueue* const found = FromVerbs(channel)->GetEvent();
  if (found == nullptr) return -1;
  *cq = found;
  *cq_context = found->cq_context;
  return 0;
}

void EngineDevice::AckCqEvents(ibv_cq* cq, unsigned int count) {
  FromVerbs(cq)->AckEvents(count);
}

int EngineDevice::TakeCqLine() {
  std::lock_guard lock(names_mutex_);
  if (!free_cq_lines_.empty()) {
    const uint32_t line = free_cq_lines_.back();
    free_cq_lines_.pop_back();
    return static_cast<int>(line);
  }
  if (next_cq_line_ == kMaxCompletionQueues) return -1;
  return static_cast<int>(next_cq_line_++);
}

ibv_cq* EngineDevice::CreateCq(int cqe, void* cq_context,
                               ibv_comp_channel* channel, int comp_vector) {
  if (cqe < 1 || cqe > kMaxCqEntries || comp_vector != 0) {
    errno = EINVAL;
    return nullptr;
  }
  const int line = TakeCqLine();
  if (line < 0) {
    errno = ENOMEM;
    return nullptr;
  }
  const auto lock = LockQueues();
  return new CompletionQueue(&context_, cqe, cq_context,
                             channel == nullptr ? nullptr : FromVerbs(channel),
                             segment_.cq_line(line), line, async_events_.get());
}

int EngineDevice::ResizeCq(ibv_cq* cq, int cqe) {
  if (cqe < 1 || cqe > kMaxCqEntries) return EINVAL;
  const auto lock = LockQueues();
  return FromVerbs(cq)->Resize(static_cast<uint32_t>(cqe));
}

int EngineDevice::DestroyCq(ibv_cq* cq) {
  CompletionQueue* const queue = FromVerbs(cq);
  {
    const auto lock = LockQueues();
    if (queue->has_targets()) return EBUSY;
    queue->Detach();
  }
  const uint32_t line = queue->line_index();
  delete queue;
  std::lock_guard lock(names_mutex_);
  free_cq_lines_.push_back(line);
  return 0;
}

// --- Shared receive queues ---------------------------------------------------

ibv_srq* EngineDevice::CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) {
  if (init->attr.max_wr == 0 ||
      init->attr.max_wr > static_cast<uint32_t>(attributes_.max_srq_wr) ||
      init->attr.max_sge > kMaxSges) {
    errno = EINVAL;
    return nullptr;
  }
  return new SharedReceiveQueue(&context_, FromVerbs(pd), *init,
                                async_events_.get());
}

int EngineDevice::ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  const auto lock = LockQueues();
  return FromVerbs(srq)->Modify(*attr, mask);
}

int EngineDevice::QuerySrq(ibv_srq* srq, ibv_srq_attr* attr) {
  const auto lock = LockQueues();
  FromVerbs(srq)->Query(attr);
  return 0;
}

int EngineDevice::DestroySrq(ibv_srq* srq) {
  SharedReceiveQueue* const queue = FromVerbs(srq);
  {
    const auto lock = LockQueues();
    if (queue->users != 0) return EBUSY;
  }
  delete queue;
  return 0;
}

// --- Queue pairs -------------------------------------------------------------

uint32_t EngineDevice::TakeQpNumber() {
  std::lock_guard lock(names_mutex_);
  if (qps_.size() >= static_cast<size_t>(kMaxQps)) return 0;
  // 0 and 1 stand for special QPs on InfiniBand.
  do {
    next_qp_num_ = std::max<uint32_t>((next_qp_num_ + 1) & kQpNumMask, 2);
  } while (!qps_.emplace(next_qp_num_, nullptr).second);
  return next_qp_num_;
}

ibv_qp* EngineDevice::CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) {
  errno = init->qp_type != IBV_QPT_RC ? EOPNOTSUPP : CheckCapabilities(*init);
  if (errno != 0) return nullptr;
  const uint32_t number = TakeQpNumber();
  if (number == 0) {
    errno = ENOMEM;
    return nullptr;
  }
  QueuePair::Environment environment;
  environment.context = &context_;
  environment.memory = &memory_;
  environment.links = &links_;
  environment.async_events = async_events_.get();
  environment.clock = clock_;
  QueuePair* pair;
  {
    const auto lock = LockQueues();
    pair = new QueuePair(environment, number, FromVerbs(pd), *init);
  }
  std::lock_guard lock(names_mutex_);
  qps_[number] = pair;
  return pair;
}

QueuePair* EngineDevice::FindQp(uint32_t number) {
  std::lock_guard lock(names_mutex_);
  const auto found = qps_.find(number);
  return found == qps_.end() ? nullptr : found->second;
}

int EngineDevice::ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const auto lock = LockQueues();
  return FromVerbs(qp)->Modify(*attr, mask);
}

int EngineDevice::QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int,
                          ibv_qp_init_attr* init) {
  const auto lock = LockQueues();
  FromVerbs(qp)->Query(attr, init);
  return 0;
}

int EngineDevice::DestroyQp(ibv_qp* qp) {
  QueuePair* const pair = FromVerbs(qp);
  {
    std::lock_guard lock(names_mutex_);
    qps_.erase(pair->qp_num);
  }
  {
    const auto lock = LockQueues();
    pair->Detach();
  }
  delete pair;
  return 0;
}

// --- Events and connections --------------------------------------------------

int EngineDevice::GetAsyncEvent(ibv_async_event* event) {
  return async_events_->Get(event);
}

void EngineDevice::AckAsyncEvent(ibv_async_event* event) {
  async_events_->Ack(*event);
}

absl::StatusOr<std::unique_ptr<ConnectionManager>>
EngineDevice::CreateConnectionManager() {
  return fabric_->CreateConnectionManager(this);
}

}  // namespace rdma::soft
