#include "tests/conformance/peer_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>

#include "gtest/gtest.h"
#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

constexpr size_t kPeerBufferBytes = size_t{4} << 20;

// A child that its parent forgot ends by itself.
constexpr unsigned int kChildLifetimeSeconds = 120;

// The child's side of one connection.
class Child {
 public:
  explicit Child(PeerProcess::Role role)
      : role_(role),
        provider_(TheProviderUnderTest().make()),
        device_(OpenDevice(*provider_, End::kServer,
                           {.single_threaded_queues = true})) {}

  // Runs until the process is killed, or returns after a failure.
  void Run(int port_pipe) {
    if (device_ == nullptr) return;
    side_.emplace(device_.get(), &pump_);
    buffer_ = side_->Allocate(kPeerBufferBytes);
    if (!side_->ok() || buffer_.empty() || !Listen(port_pipe) || !Accept()) {
      return;
    }
    while (Work()) {
    }
  }

 private:
  bool Listen(int port_pipe) {
    absl::StatusOr<SocketAddress> address =
        SocketAddress::FromNumeric(TheProviderUnderTest().server_address, 0);
    absl::StatusOr<CmId*> listener =
        side_->manager().Listen(*address, 8, nullptr);
    if (!listener.ok()) return false;
    const uint16_t port = (*listener)->local_address().port();
    return write(port_pipe, &port, sizeof(port)) == sizeof(port);
  }

  bool Accept() {
    std::optional<CmEvent> request = pump_.Await(&side_->manager());
    if (!request.has_value()) return false;
    target_ = MemoryOffer::FromPrivateData(request->private_data);
    qp_ = side_->CreateQp({.max_send_wr = kDepth, .max_recv_wr = kDepth});
    buffer_.Fill(PeerProcess::kFill);
    const MemoryOffer offer = {.addr = buffer_.addr(),
                               .rkey = buffer_.rkey(),
                               .bytes = kPeerBufferBytes};
    ConnectionParameters parameters = {.private_data = offer.ToPrivateData(),
                                       .rnr_retry_count = 7};
    if (!side_->manager().Accept(request->id, qp_, parameters).ok()) {
      return false;
    }
    if (role_ == PeerProcess::Role::kIdle) {
      for (uint64_t id = 0; id < kDepth; ++id) PostOneReceive(id);
    }
    return pump_.Await(&side_->manager()).has_value();
  }

  void PostOneReceive(uint64_t id) {
    PostReceive(qp_, {.wr_id = id, .sges = {buffer_.sge(0, 4096)}});
  }

  // One request of the role, if it has any, and one completion.
  bool Work() {
    switch (role_) {
      case PeerProcess::Role::kIdle:
      case PeerProcess::Role::kServe:
        pump_.Turn();
        return true;
      case PeerProcess::Role::kSend:
        return Keep(
            SendWr(next_)
                .Sge(buffer_.sge(next_ % 1000, PeerProcess::kMessageBytes))
                .Imm(htonl(next_)));
      case PeerProcess::Role::kRead:
        return Keep(ReadWr(next_, target_.addr, target_.rkey)
                        .Sge(buffer_.sge(0, target_.bytes)));
      case PeerProcess::Role::kWrite:
        return Keep(WriteWr(next_, target_.addr, target_.rkey)
                        .Sge(buffer_.sge(0, target_.bytes)));
    }
    return false;
  }

  // Keeps half a queue of requests under way.
  bool Keep(const WorkRequest& request) {
    if (next_ >= kDepth / 2) {
      const ibv_wc wc = pump_.Await(side_->send_cq());
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << testing::PrintToString(wc);
      if (wc.status != IBV_WC_SUCCESS) return false;
    }
    ++next_;
    return Post(qp_, request) == 0;
  }

  static constexpr uint32_t kDepth = 32;

  const PeerProcess::Role role_;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Device> device_;
  Pump pump_{absl::Seconds(kChildLifetimeSeconds), absl::ZeroDuration()};
  std::optional<Side> side_;
  Region buffer_;
  ibv_qp* qp_ = nullptr;
  MemoryOffer target_;
  uint64_t next_ = 0;
};

}  // namespace

std::string MemoryOffer::ToPrivateData() const {
  std::string data(sizeof(*this), '\0');
  std::memcpy(data.data(), this, sizeof(*this));
  return data;
}

MemoryOffer MemoryOffer::FromPrivateData(const std::string& data) {
  MemoryOffer offer;
  if (data.size() >= sizeof(offer)) {
    std::memcpy(&offer, data.data(), sizeof(offer));
  }
  return offer;
}

PeerProcess::PeerProcess(Role role) {
  int port_pipe[2];
  if (pipe(port_pipe) != 0) {
    ADD_FAILURE() << "pipe: " << std::strerror(errno);
    return;
  }
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(kChildLifetimeSeconds);
    close(port_pipe[0]);
    Child(role).Run(port_pipe[1]);
    _exit(1);
  }
  close(port_pipe[1]);
  uint16_t port = 0;
  if (read(port_pipe[0], &port, sizeof(port)) != sizeof(port)) {
    ADD_FAILURE() << "the peer process did not start";
  }
  close(port_pipe[0]);
  address_ =
      *SocketAddress::FromNumeric(TheProviderUnderTest().server_address, port);
}

PeerProcess::~PeerProcess() { Kill(); }

void PeerProcess::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace rdma::conformance
