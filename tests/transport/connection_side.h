// One side of connections over the software device, for tests of what a
// connection does: a poller with its connections and calls, no rpc/.
//
//   Side server, client;
//   server.Listen();
//   Connection* connection = client.Connect(server.address());
//   EXPECT_TRUE(Eventually([&] { return client.up() == 1; }));
//   client.Open(connection);   // a call of one frame
//
// The device is the real one with a test's hand in between (meddled_device.h).
//
// Thread rule: public functions from the test's thread.
#ifndef VERBENA_TESTS_TRANSPORT_CONNECTION_SIDE_H_
#define VERBENA_TESTS_TRANSPORT_CONNECTION_SIDE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "rdma_transport/client_poller.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/provider/provider.h"
#include "tests/transport/meddled_device.h"

namespace rdma::testing {

class Side final : public ConnectionOwner,
                   public CmEventHandler,
                   public rpc::ServerSink {
 public:
  using Prepare = std::function<void(MeddledDevice&)>;

  explicit Side(const Poller::Options& options = {},
                const Prepare& prepare = nullptr,
                uint64_t memory_budget_bytes = uint64_t{256} << 20);
  ~Side();

  // Runs `task` as the driver and waits for it.
  void Do(absl::FunctionRef<void()> task);

  // Listens; what connects is accepted, and its calls are answered at once, or
  // when Answer is called.
  void Listen();
  const SocketAddress& address() const { return address_; }
  void AnswerAtOnce(bool at_once) { answer_at_once_ = at_once; }
  void Answer();
  void AnswerOldest();
  // Handlers block until it is notified; null: they do not. On a client, what
  // hears of frames, sent and come, of calls that are opened from now on.
  void BlockHandlers(absl::Notification* until) { blocked_until_ = until; }
  // A client takes answers of one small message in one go.
  void TakeOnlyMessages() { takes_only_messages_ = true; }
  // Large messages are taken as they arrive, up to so many bytes of each; where
  // the device can, in turns by pieces and in place, but for the last MiB.
  void TakeWhatArrives(size_t at_most = SIZE_MAX) { takes_arriving_ = at_most; }
  // They are taken by pieces up to there, and the rest in place, once all of it
  // has had time to come.
  void ReadInPlaceFrom(size_t offset) { in_place_from_ = offset; }
  // Of the last one, and how many were taken in whole or as far as they came.
  size_t arrived_bytes() const { return arrived_bytes_; }
  int arrived() const { return arrived_; }
  // Of connections made from now on.
  void SetOfferGrace(absl::Duration grace) { options_.offer_grace = grace; }
  // Why the last connection was not accepted.
  absl::Status last_refusal() const;

  absl::StatusOr<Connection*> Connect(const SocketAddress& address);
  // The same, and it is up.
  Connection* ConnectTo(const Side& server);
  // Starts a call with a message of so many bytes. `path` lives as long as it.
  rpc::CallHandle Open(Connection* connection, size_t bytes = 1,
                       std::string_view path = "/test.Test/Method",
                       uint32_t method = 0, bool end = true);
  // A message in parts.
  struct Growing {
    rpc::CallHandle call;
    std::shared_ptr<GrowingMessage> message;
    rpc::Buffer memory;
  };
  // Starts a call with such a message of so many TestBytes, of which `written`
  // are said to be there; a server answers the oldest of its calls so.
  Growing OpenGrowing(Connection* connection, size_t bytes, size_t written = 0);
  Growing AnswerGrowing(std::string_view message, uint32_t status_code = 0);
  // What they are made of. Inside Do.
  rdma::Call* NewCall(std::string_view path);
  Growing Grow(std::string_view message, rpc::OutgoingFrame& frame);
  // Sends a further frame, `end`: the last.
  void SendMore(rpc::CallHandle call, size_t bytes, bool end = false);
  // Whether the frames of streams are taken, so that more may come; those that
  // came before, too. They are not to begin with.
  void TakeFrames(bool take);
  void CloseAll(const absl::Status& why);
  // Closes them once their peers have everything. Inside Do.
  void CloseAllWhenFlushed();
  // Ends all calls of this side.
  void ResetAll();
  // The one.
  void Reset(rpc::CallHandle call);

  int up() const { return up_; }
  int down() const { return down_; }
  int opened() const { return opened_; }      // a server's calls
  int answered() const { return answered_; }  // a client's calls
  int failed() const { return failed_; }
  int not_run() const { return not_run_; }  // of the failed ones, for certain
  int sent() const { return sent_; }        // frames, by OnSent
  // That came, of calls and answers.
  int frames() const { return frames_; }
  int asked_to_go() const { return asked_to_go_; }
  // How many receives more than promised to peers were posted, at least, when
  // an answer, which grants credits, had been sent.
  int least_spare_receives() const { return least_spare_receives_; }
  absl::Status last_down() const;
  absl::Status last_failure() const;
  uint32_t reserved();
  // What the peer may send of a server's one call at a time.
  int64_t window_size();
  // Of the messages that came, in order; of streams all.
  std::vector<size_t> message_sizes() const;
  // Of the last one.
  std::string last_message() const;
  MeddledDevice& device() { return *device_; }
  Poller& poller() { return *poller_->poller; }

 private:
  class Sink;

  void OnConnectionUp(Connection&) override { ++up_; }
  void OnConnectionDown(Connection& connection, const absl::Status& why,
                        bool was_up) override;
  void OnGoAway(Connection&) override { ++asked_to_go_; }
  void OnCallGone(Connection&) override {}
  std::string_view PathOf(uint32_t) override { return paths_.back(); }
  const void* OnMethod(std::string_view) override { return this; }
  const void* OnMethod(std::string_view, uint32_t) override { return this; }
  void OnCallDeadline(rdma::Call&) override {}
  void OnCallRefused(rdma::Call&) override {}
  void OnCmEvent(CmEvent& event) override;
  bool ParsesWhatArrives(const void*) const override {
    return takes_arriving_ > 0;
  }
  rpc::CallSink* OnCall(const Call& call, rpc::IncomingFrame& frame) override;
  std::string TakeArriving(rpc::ArrivingMessage& message);
  void SendAnswer(rpc::CallHandle handle);
  rpc::CallHandle TakeUnanswered();
  void OnStreamFrame(rpc::CallHandle handle, const rpc::IncomingFrame& frame);

  MeddledDevice* device_ = nullptr;  // the context's
  rpc::TransportOptions options_;
  SocketAddress address_;
  CmId* listener_ = nullptr;
  std::atomic<bool> answer_at_once_{true};
  std::atomic<absl::Notification*> blocked_until_{nullptr};
  std::atomic<bool> takes_only_messages_{false};
  std::atomic<size_t> takes_arriving_{0};
  std::atomic<size_t> in_place_from_{0};
  std::atomic<size_t> arrived_bytes_{0};
  std::atomic<int> arrived_{0};
  std::atomic<int> up_{0};
  std::atomic<int> down_{0};
  std::atomic<int> opened_{0};
  std::atomic<int> answered_{0};
  std::atomic<int> failed_{0};
  std::atomic<int> not_run_{0};
  std::atomic<int> sent_{0};
  std::atomic<int> frames_{0};
  std::atomic<int> asked_to_go_{0};
  std::atomic<int> least_spare_receives_{std::numeric_limits<int>::max()};
  std::vector<Connection*> connections_;  // the driver's
  std::deque<std::string> paths_;         // the driver's: of calls so far

  mutable absl::Mutex mutex_;
  absl::Status last_refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_down_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<rpc::CallHandle> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> message_sizes_ ABSL_GUARDED_BY(mutex_);
  std::string last_message_ ABSL_GUARDED_BY(mutex_);
  bool take_frames_ ABSL_GUARDED_BY(mutex_) = false;
  // Calls and window bytes.
  std::vector<std::pair<rpc::CallHandle, uint64_t>> untaken_
      ABSL_GUARDED_BY(mutex_);

  // Goes first, with the last callbacks, which use it and the rest.
  std::unique_ptr<ClientPoller> poller_;
};

// Such that no two parts of them are alike.
std::string TestBytes(size_t count);

// Whether `condition` comes true within `timeout`. For what keepers do, and
// tell nobody about.
bool Eventually(const std::function<bool()>& condition,
                absl::Duration timeout = absl::Seconds(20));

// Whether a call that `client` begins now is answered; `server` answers it at
// once, and no later ones. All that was sent on the connection before has
// arrived then.
bool AnotherCallIsAnswered(Side& client, Connection* connection, Side& server);

}  // namespace rdma::testing

#endif  // VERBENA_TESTS_TRANSPORT_CONNECTION_SIDE_H_
