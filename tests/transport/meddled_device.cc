#include "tests/transport/meddled_device.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "rdma_transport/software/software_provider.h"

namespace rdma::testing {
namespace {

// Operations know no device of ours.
int (*poll_cq)(ibv_cq*, int, ibv_wc*) = nullptr;
int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
unsigned int past_caches_flag = 0;
std::atomic<int> sends_completed{0};
std::atomic<int> reads_posted{0};
std::atomic<int> reads_posted_past_caches{0};
std::atomic<int> reads_to_complete{0};
std::atomic<int> reads_to_post{0};

}  // namespace

MeddledDevice::MeddledDevice()
    : provider_(MakeSoftwareProvider()),
      real_(*provider_->Open("soft0", {.single_threaded_queues = true})),
      attributes_(real_->attributes()),
      real_async_fd_(real_->context()->async_fd) {
  real_->context()->async_fd =
      eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
}

MeddledDevice::~MeddledDevice() {
  close(std::exchange(real_->context()->async_fd, real_async_fd_));
}

std::vector<ibv_qp*> MeddledDevice::qps() const {
  absl::MutexLock lock(&mutex_);
  return qps_;
}

ibv_qp* MeddledDevice::CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp* const qp = real_->CreateQp(pd, init);
  absl::MutexLock lock(&mutex_);
  if (qp != nullptr) qps_.push_back(qp);
  return qp;
}

void MeddledDevice::FailPolls() {
  context()->ops.poll_cq = [](ibv_cq*, int, ibv_wc*) { return -1; };
}

void MeddledDevice::CountSendCompletions() {
  poll_cq = context()->ops.poll_cq;
  context()->ops.poll_cq = [](ibv_cq* cq, int capacity, ibv_wc* completions) {
    const int count = poll_cq(cq, capacity, completions);
    for (int i = 0; i < count; ++i) {
      sends_completed += static_cast<int>(completions[i].wr_id & 1);
    }
    return count;
  };
}

int MeddledDevice::send_completions() { return sends_completed.load(); }

void MeddledDevice::CountReads() {
  post_send = context()->ops.post_send;
  testing::past_caches_flag = past_caches_flag();
  context()->ops.post_send = [](ibv_qp* qp, ibv_send_wr* first,
                                ibv_send_wr** bad) {
    for (const ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
      if (wr->opcode != IBV_WR_RDMA_READ) continue;
      ++reads_posted;
      const bool passes = (wr->send_flags & testing::past_caches_flag) != 0;
      reads_posted_past_caches += passes ? 1 : 0;
    }
    return post_send(qp, first, bad);
  };
}

void MeddledDevice::RefuseReads(int first) {
  post_send = context()->ops.post_send;
  reads_to_post = first - 1;
  context()->ops.post_send = [](ibv_qp* qp, ibv_send_wr* wr,
                                ibv_send_wr** bad) {
    if (wr->opcode == IBV_WR_RDMA_READ && --reads_to_post < 0) {
      *bad = wr;
      return ENOMEM;
    }
    return post_send(qp, wr, bad);
  };
}

int MeddledDevice::reads() { return reads_posted.load(); }

int MeddledDevice::reads_past_caches() {
  return reads_posted_past_caches.load();
}

void MeddledDevice::FailReads(int first) {
  poll_cq = context()->ops.poll_cq;
  reads_to_complete = first - 1;
  context()->ops.poll_cq = [](ibv_cq* cq, int capacity, ibv_wc* completions) {
    const int count = poll_cq(cq, capacity, completions);
    for (int i = 0; i < count; ++i) {
      if (completions[i].status == IBV_WC_SUCCESS &&
          completions[i].opcode == IBV_WC_RDMA_READ &&
          --reads_to_complete < 0) {
        completions[i].status = IBV_WC_RETRY_EXC_ERR;
      }
    }
    return count;
  };
}

void MeddledDevice::Raise(const ibv_async_event& event) {
  absl::MutexLock lock(&mutex_);
  raised_.push_back(event);
  eventfd_write(real_->context()->async_fd, 1);
}

size_t MeddledDevice::raised() const {
  absl::MutexLock lock(&mutex_);
  return raised_.size();
}

int MeddledDevice::GetAsyncEvent(ibv_async_event* event) {
  absl::MutexLock lock(&mutex_);
  if (raised_.empty()) return real_->GetAsyncEvent(event);
  *event = raised_.front();
  raised_.pop_front();
  eventfd_t one;
  eventfd_read(real_->context()->async_fd, &one);
  return 0;
}

void MeddledDevice::AckAsyncEvent(ibv_async_event* event) {
  real_->AckAsyncEvent(event);
}

class MeddledDevice::MeddledConnectionManager final : public ConnectionManager {
 public:
  MeddledConnectionManager(std::unique_ptr<ConnectionManager> real,
                           std::atomic<int>* flood_left)
      : real_(std::move(real)), flood_left_(flood_left) {}

  int fd() const override { return real_->fd(); }
  bool tells_of_dead_peers() const override {
    return real_->tells_of_dead_peers();
  }
  std::optional<CmEvent> GetEvent() override {
    if (*flood_left_ == 0) return real_->GetEvent();
    --*flood_left_;
    return CmEvent{.type = CmEvent::Type::kDisconnected};
  }
  absl::StatusOr<CmId*> Listen(const SocketAddress& address, int backlog,
                               void* context) override {
    return real_->Listen(address, backlog, context);
  }
  absl::StatusOr<CmId*> Connect(const SocketAddress& address, ibv_qp* qp,
                                const ConnectionParameters& parameters,
                                absl::Duration timeout,
                                void* context) override {
    return real_->Connect(address, qp, parameters, timeout, context);
  }
  absl::Status Accept(CmId* id, ibv_qp* qp,
                      const ConnectionParameters& parameters) override {
    return real_->Accept(id, qp, parameters);
  }
  absl::Status Reject(CmId* id, std::string_view reason) override {
    return real_->Reject(id, reason);
  }
  absl::StatusOr<std::unique_ptr<CmId>> Release(CmId* id) override {
    return real_->Release(id);
  }
  absl::StatusOr<CmId*> Adopt(std::unique_ptr<CmId> id) override {
    return real_->Adopt(std::move(id));
  }
  void Disconnect(CmId* id) override { real_->Disconnect(id); }
  void Destroy(CmId* id) override { real_->Destroy(id); }

 private:
  const std::unique_ptr<ConnectionManager> real_;
  std::atomic<int>* const flood_left_;
};

absl::StatusOr<std::unique_ptr<ConnectionManager>>
MeddledDevice::CreateConnectionManager() {
  absl::StatusOr<std::unique_ptr<ConnectionManager>> real =
      real_->CreateConnectionManager();
  if (!real.ok()) return real.status();
  return std::make_unique<MeddledConnectionManager>(*std::move(real),
                                                    &flood_left_);
}

}  // namespace rdma::testing
