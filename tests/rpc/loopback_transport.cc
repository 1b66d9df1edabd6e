#include "tests/rpc/loopback_transport.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/rpc/loopback_memory.h"

namespace rpc::testing {
namespace {

using Lock = std::unique_lock<std::mutex>;

// Something for a sink, in its order.
struct Delivery {
  enum Type { kFrame, kSent, kClosed };

  Type type = kFrame;
  absl::Time due;
  std::string header;
  IncomingFrame frame;
  CallOutcome outcome;
};

// First in, first out; keeps its memory.
template <class T>
class Fifo {
 public:
  bool empty() const { return next_ == items_.size(); }
  T& front() { return items_[next_]; }
  T& back() { return items_.back(); }
  void push_back(T item) { items_.push_back(std::move(item)); }
  T Pop() {
    T first = std::move(items_[next_++]);
    if (empty()) clear();
    return first;
  }
  void clear() {
    items_.clear();
    next_ = 0;
  }

 private:
  std::vector<T> items_;
  size_t next_ = 0;
};

// One side of a call. Its deliveries run one at a time.
struct Side {
  CallSink* sink = nullptr;
  bool known = false;    // the sink's owner heard of the call
  bool running = false;  // some thread delivers, or is about to
  Fifo<Delivery> pending;
  bool ended = false;  // this side sent its last frame
};

struct Call {
  uint64_t handle = 0;
  Side client;
  Side server;
  bool closed = false;
  bool waiting = false;  // for a server (wait_for_ready)
  std::atomic<bool> cut_off{false};
  uint32_t method = 0;
  absl::Time deadline;
  std::optional<Delivery> parked;  // the first frame, while `waiting`
  ServerTransport* server_transport = nullptr;
  ServerSink* server_sink = nullptr;

  bool Idle() const {
    return closed && !client.running && !server.running &&
           client.pending.empty() && server.pending.empty();
  }
};

using CallPtr = std::shared_ptr<Call>;

}  // namespace

class LoopbackNetwork::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(const LoopbackOptions& options)
      : options_(options),
        memory_(std::make_shared<LoopbackMemory>(options.memory_budget_bytes)) {
    for (int i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this] { Work(); });
    }
    timer_ = std::thread([this] { KeepTime(); });
  }

  void Stop() {
    {
      Lock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    timer_.join();
  }

  const LoopbackOptions& options() const { return options_; }
  LoopbackMemory& memory() { return *memory_; }

  // ---- Methods ----

  uint32_t RegisterMethod(std::string_view path) {
    Lock lock(mutex_);
    for (size_t i = 0; i < methods_.size(); ++i) {
      if (methods_[i].path == path) return static_cast<uint32_t>(i);
    }
    methods_.push_back({std::string(path)});
    return static_cast<uint32_t>(methods_.size() - 1);
  }

  // ---- The server ----

  bool SetServer(ServerTransport* transport, ServerSink* sink) {
    Lock lock(mutex_);
    if (server_ != nullptr) return false;
    server_ = transport;
    server_sink_ = sink;
    for (Method& method : methods_) method.asked = false;
    std::vector<CallPtr> to_deliver;
    for (auto& [handle, call] : calls_) {
      if (call->waiting && !call->closed) to_deliver.push_back(call);
    }
    for (const CallPtr& call : to_deliver) {
      call->waiting = false;
      Admit(call, *std::exchange(call->parked, std::nullopt));
    }
    changed_.notify_all();
    Drive(lock, to_deliver);
    return true;
  }

  void Shutdown(ServerTransport* transport, absl::Time deadline) {
    Lock lock(mutex_);
    if (server_ == transport) {
      server_ = nullptr;
      changed_.notify_all();
    }
    WaitForCalls(lock, transport, deadline);
    std::vector<CallPtr> left;
    for (auto& [handle, call] : calls_) {
      if (call->server_transport == transport) left.push_back(call);
    }
    for (const CallPtr& call : left) {
      Close(call, absl::CancelledError("the server shut down"), nullptr);
    }
    Drive(lock, left);
    WaitForCalls(lock, transport, absl::InfiniteFuture());
  }

  // ---- Calls ----

  CallHandle StartCall(const CallOptions& options, OutgoingFrame frame,
                       CallSink* sink) {
    Lock lock(mutex_);
    const CallPtr call = NewCall();
    call->client.sink = sink;
    call->client.known = true;
    call->client.ended = frame.end;
    call->method = options.method;
    call->deadline = options.deadline;
    const CallHandle handle{call->handle};
    Delivery first = ToDelivery(std::move(frame), replace_request_);
    if (options.deadline != absl::InfiniteFuture()) {
      timers_.emplace(options.deadline, call);
      changed_.notify_all();
    }
    const bool reachable = server_ != nullptr && !unreachable_;
    tried_ = true;
    if (options.deadline != absl::InfiniteFuture() &&
        options.deadline <= absl::Now()) {
      Close(call, absl::DeadlineExceededError("Deadline Exceeded"), nullptr,
            /*may_have_run=*/false);
    } else if (reachable) {
      Admit(call, std::move(first));
    } else if (options.wait_for_ready) {
      call->waiting = true;
      call->parked = std::move(first);
    } else {
      Close(call, absl::UnavailableError("nobody listens"), nullptr,
            /*may_have_run=*/false);
    }
    Drive(lock, call);
    return handle;
  }

  // From one side to the other.
  void Send(CallHandle handle, bool from_server, OutgoingFrame frame) {
    Lock lock(mutex_);
    const CallPtr call = Find(handle);
    if (call == nullptr || call->closed) return;
    Side& from = from_server ? call->server : call->client;
    Side& to = from_server ? call->client : call->server;
    if (from.ended) return;
    from.ended = frame.end;
    Delivery delivery = ToDelivery(
        std::move(frame), from_server ? replace_response_ : replace_request_);
    if (from_server && delivery.frame.end) from.ended = true;
    Delivery sent;
    sent.type = Delivery::kSent;
    from.pending.push_back(std::move(sent));
    to.pending.push_back(std::move(delivery));
    if (call->client.ended && call->server.ended) {
      Close(call, absl::OkStatus(), nullptr);
    }
    Drive(lock, call);
  }

  void Cancel(CallHandle handle, bool from_server, absl::Status reason) {
    Lock lock(mutex_);
    const CallPtr call = Find(handle);
    if (call == nullptr) return;
    Close(call, std::move(reason), from_server ? &call->server : &call->client);
    Drive(lock, call);
  }

  void DropAll() {
    Lock lock(mutex_);
    std::vector<CallPtr> calls;
    for (auto& [handle, call] : calls_) calls.push_back(call);
    for (const CallPtr& call : calls) {
      Close(call, absl::UnavailableError("the connection broke"), nullptr);
    }
    Drive(lock, calls);
  }

  // ---- State ----

  void set_unreachable(bool unreachable) {
    Lock lock(mutex_);
    unreachable_ = unreachable;
    changed_.notify_all();
  }

  ConnectivityState GetState(bool try_to_connect) {
    Lock lock(mutex_);
    if (try_to_connect) tried_ = true;
    return State();
  }

  bool WaitForStateChange(ConnectivityState last, absl::Time deadline) {
    Lock lock(mutex_);
    return WaitUntil(lock, deadline, [&] { return State() != last; });
  }

  size_t open_calls() {
    Lock lock(mutex_);
    return calls_.size();
  }
  void WaitUntilIdle() {
    Lock lock(mutex_);
    WaitUntil(lock, absl::InfiniteFuture(), [&] { return calls_.empty(); });
  }

  void Replace(bool response, const RawFrame& frame) {
    Lock lock(mutex_);
    (response ? replace_response_ : replace_request_) = frame;
  }

 private:
  struct Method {
    std::string path;
    bool asked = false;
    const void* id = nullptr;
  };

  CallPtr NewCall() {
    CallPtr call;
    if (spares_.empty()) {
      call = std::make_shared<Call>();
    } else {
      call = std::move(spares_.back());
      spares_.pop_back();
    }
    call->handle = ++last_handle_;
    if (spare_nodes_.empty()) {
      calls_.emplace(call->handle, call);
    } else {
      auto node = std::move(spare_nodes_.back());
      spare_nodes_.pop_back();
      node.key() = call->handle;
      node.mapped() = call;
      calls_.insert(std::move(node));
    }
    return call;
  }

  CallPtr Find(CallHandle handle) {
    const auto found = calls_.find(handle.value);
    return found == calls_.end() ? nullptr : found->second;
  }

  Delivery ToDelivery(OutgoingFrame frame, std::optional<RawFrame>& replace) {
    Delivery delivery;
    delivery.due = options_.delay == absl::ZeroDuration()
                       ? absl::InfinitePast()
                       : absl::Now() + options_.delay;
    IncomingFrame& in = delivery.frame;
    if (replace.has_value()) {
      delivery.header = replace->header;
      in.has_message = replace->has_message;
      in.message = memory_->Copy(
          absl::MakeConstSpan(
              reinterpret_cast<const std::byte*>(replace->message.data()),
              replace->message.size()),
          options_.piece_bytes);
      in.end = replace->end;
      in.status_code = replace->status_code;
      replace.reset();
      return delivery;
    }
    delivery.header.assign(reinterpret_cast<const char*>(frame.header.data()),
                           frame.header.size());
    in.has_message = frame.has_message;
    if (!frame.small_message.empty()) {
      in.message = memory_->Copy(frame.small_message, options_.piece_bytes);
    } else if (!frame.message.contiguous() ||
               frame.message.size() <= options_.piece_bytes) {
      in.message = memory_->PassOrCopy(std::move(frame.message));
    } else {
      const std::string_view bytes = frame.message.front_view();
      in.message = memory_->Copy(
          absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()),
                              bytes.size()),
          options_.piece_bytes);
    }
    if (!frame.attachment.empty()) {
      in.attachment = memory_->PassOrCopy(std::move(frame.attachment));
    }
    in.end = frame.end;
    in.status_code = frame.status_code;
    return delivery;
  }

  // The call reaches the server.
  void Admit(const CallPtr& call, Delivery first) {
    call->server_transport = server_;
    call->server_sink = server_sink_;
    call->server.pending.push_back(std::move(first));
  }

  // Ends the call. `initiator` hears of it at once, the others after what is
  // under way to them.
  void Close(const CallPtr& call, absl::Status status, const Side* initiator,
             bool may_have_run = true) {
    if (call->closed) return;
    call->closed = true;
    call->waiting = false;
    call->parked.reset();
    if (!status.ok()) call->cut_off.store(true, std::memory_order_relaxed);
    if (!call->server.known && !call->server.running &&
        call->server_sink == nullptr) {
      may_have_run = false;
    }
    for (Side* side : {&call->client, &call->server}) {
      if (side == &call->server && call->server_sink == nullptr) continue;
      Delivery delivery;
      delivery.type = Delivery::kClosed;
      delivery.outcome = {status, may_have_run || status.ok()};
      delivery.due = absl::InfinitePast();
      if (side == initiator) {
        side->pending.clear();
      } else if (!side->pending.empty()) {
        delivery.due = side->pending.back().due;
      }
      side->pending.push_back(std::move(delivery));
    }
  }

  void Drive(Lock& lock, const CallPtr& call) {
    DriveSide(lock, call, call->client);
    DriveSide(lock, call, call->server);
    Forget(call);
  }
  void Drive(Lock& lock, const std::vector<CallPtr>& calls) {
    for (const CallPtr& call : calls) Drive(lock, call);
  }

  void DriveSide(Lock& lock, const CallPtr& call, Side& side) {
    if (side.running || side.pending.empty()) return;
    side.running = true;
    if (threads_.empty()) {
      Deliver(lock, call, side);
    } else {
      ready_.push_back({call, &side});
      changed_.notify_all();
    }
  }

  // Delivers what is due. REQUIRES: side.running.
  void Deliver(Lock& lock, const CallPtr& call, Side& side) {
    while (!side.pending.empty()) {
      if (const absl::Time due = side.pending.front().due;
          due != absl::InfinitePast() && due > absl::Now()) {
        timers_.emplace(due, call);
        changed_.notify_all();
        break;
      }
      Delivery delivery = side.pending.Pop();
      const bool opens = &side == &call->server && !side.known &&
                         delivery.type == Delivery::kFrame;
      if (opens) side.known = true;
      lock.unlock();
      const bool rejected = DeliverOne(*call, side, delivery, opens);
      delivery = Delivery();
      lock.lock();
      if (rejected) {
        call->server_sink = nullptr;
        side.pending.clear();
        Close(call, absl::UnimplementedError("the method is not known"),
              nullptr, /*may_have_run=*/false);
        DriveSide(lock, call, call->client);
      }
    }
    side.running = false;
    Forget(call);
    changed_.notify_all();
  }

  // True where the server does not know the method. `opens`: it is the call's
  // first frame.
  bool DeliverOne(Call& call, Side& side, Delivery& delivery, bool opens) {
    delivery.frame.header = absl::MakeConstSpan(
        reinterpret_cast<const std::byte*>(delivery.header.data()),
        delivery.header.size());
    if (delivery.type == Delivery::kSent) {
      side.sink->OnSent();
    } else if (delivery.type == Delivery::kClosed) {
      if (side.sink != nullptr) side.sink->OnClosed(delivery.outcome);
    } else if (opens) {
      side.sink = DeliverCall(call, delivery.frame);
      return side.sink == nullptr;
    } else {
      side.sink->OnFrame(delivery.frame);
    }
    return false;
  }

  CallSink* DeliverCall(Call& call, IncomingFrame& frame) {
    Lock lock(mutex_);
    Method& method = methods_[call.method];
    const bool asked = method.asked;
    const void* id = method.id;
    lock.unlock();
    if (!asked) {
      id = call.server_sink->OnMethod(method.path);
      lock.lock();
      method.asked = true;
      method.id = id;
      lock.unlock();
    }
    return call.server_sink->OnCall({.handle = CallHandle{call.handle},
                                     .method = id,
                                     .path = method.path,
                                     .deadline = call.deadline,
                                     .peer = "ipv4:127.0.0.1:40000",
                                     .cut_off = &call.cut_off},
                                    frame);
  }

  void Forget(const CallPtr& call) {
    if (!call->Idle()) return;
    const auto found = calls_.find(call->handle);
    if (found == calls_.end()) return;
    spare_nodes_.push_back(calls_.extract(found));
    spare_nodes_.back().mapped() = nullptr;
    changed_.notify_all();
    // A call with a deadline is still known to its timer.
    if (call->deadline != absl::InfiniteFuture()) return;
    call->closed = false;
    call->cut_off.store(false, std::memory_order_relaxed);
    for (Side* side : {&call->client, &call->server}) {
      side->sink = nullptr;
      side->known = side->ended = false;
    }
    call->server_transport = nullptr;
    call->server_sink = nullptr;
    spares_.push_back(call);
  }

  template <class Condition>
  bool WaitUntil(Lock& lock, absl::Time deadline, Condition condition) {
    while (!condition()) {
      if (deadline == absl::InfiniteFuture()) {
        changed_.wait(lock);
      } else if (changed_.wait_until(lock, absl::ToChronoTime(deadline)) ==
                 std::cv_status::timeout) {
        return condition();
      }
    }
    return true;
  }

  void WaitForCalls(Lock& lock, ServerTransport* transport,
                    absl::Time deadline) {
    WaitUntil(lock, deadline, [&] {
      for (const auto& [handle, call] : calls_) {
        if (call->server_transport == transport) return false;
      }
      return true;
    });
  }

  ConnectivityState State() const {
    if (!tried_) return ConnectivityState::kIdle;
    return server_ != nullptr && !unreachable_
               ? ConnectivityState::kReady
               : ConnectivityState::kTransientFailure;
  }

  void Work() {
    Lock lock(mutex_);
    while (!stopping_) {
      if (ready_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto [call, side] = ready_.Pop();
      Deliver(lock, call, *side);
    }
  }

  void KeepTime() {
    Lock lock(mutex_);
    while (!stopping_) {
      if (timers_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto first = timers_.begin();
      if (first->first > absl::Now()) {
        const auto until = absl::ToChronoTime(first->first);
        changed_.wait_until(lock, until);
        continue;
      }
      const CallPtr call = first->second;
      timers_.erase(first);
      if (call->deadline <= absl::Now() && !call->closed) {
        Close(call, absl::DeadlineExceededError("Deadline Exceeded"),
              &call->client);
      }
      Drive(lock, call);
    }
  }

  const LoopbackOptions options_;
  const std::shared_ptr<LoopbackMemory> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  ServerTransport* server_ = nullptr;
  ServerSink* server_sink_ = nullptr;
  bool unreachable_ = false;
  bool tried_ = false;
  uint64_t last_handle_ = 0;
  std::deque<Method> methods_;
  std::map<uint64_t, CallPtr> calls_;
  std::vector<std::map<uint64_t, CallPtr>::node_type> spare_nodes_;
  std::vector<CallPtr> spares_;
  Fifo<std::pair<CallPtr, Side*>> ready_;
  std::multimap<absl::Time, CallPtr> timers_;
  std::optional<RawFrame> replace_response_;
  std::optional<RawFrame> replace_request_;
  std::vector<std::thread> threads_;
  std::thread timer_;
};

namespace {

using NetworkPtr = std::shared_ptr<LoopbackNetwork::Impl>;

class LoopbackClient final : public ClientTransport {
 public:
  explicit LoopbackClient(NetworkPtr network) : network_(std::move(network)) {}

  const Limits& limits() const override { return network_->options().limits; }
  uint32_t RegisterMethod(std::string_view path) override {
    return network_->RegisterMethod(path);
  }
  CallHandle StartCall(const CallOptions& options, OutgoingFrame&& frame,
                       CallSink* sink) override {
    return network_->StartCall(options, std::move(frame), sink);
  }
  void Send(CallHandle call, OutgoingFrame&& frame) override {
    network_->Send(call, /*from_server=*/false, std::move(frame));
  }
  void Cancel(CallHandle call, absl::Status reason) override {
    network_->Cancel(call, /*from_server=*/false, std::move(reason));
  }
  void Wait(Event& event) override { event.WaitUntil(absl::InfiniteFuture()); }
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return network_->memory().Allocate(bytes);
  }
  ConnectivityState GetState(bool try_to_connect) override {
    return network_->GetState(try_to_connect);
  }
  bool WaitForStateChange(ConnectivityState last_observed,
                          absl::Time deadline) override {
    return network_->WaitForStateChange(last_observed, deadline);
  }
  std::string device() const override { return "loopback"; }

 private:
  const NetworkPtr network_;
};

class LoopbackServer final : public ServerTransport {
 public:
  ~LoopbackServer() override { Shutdown(absl::InfinitePast()); }

  const Limits& limits() const override { return network_->options().limits; }
  absl::StatusOr<int> AddListeningPort(std::string_view address) override;
  absl::Status Start(ServerSink* sink) override {
    if (network_->SetServer(this, sink)) return absl::OkStatus();
    return absl::AlreadyExistsError("another server listens");
  }
  void Send(CallHandle call, OutgoingFrame&& frame) override {
    network_->Send(call, /*from_server=*/true, std::move(frame));
  }
  void Cancel(CallHandle call, absl::Status reason) override {
    network_->Cancel(call, /*from_server=*/true, std::move(reason));
  }
  absl::StatusOr<Buffer> AllocateBuffer(CallHandle, size_t bytes) override {
    return network_->memory().Allocate(bytes);
  }
  void Shutdown(absl::Time deadline) override {
    if (network_ != nullptr) network_->Shutdown(this, deadline);
  }
  std::string device() const override { return "loopback"; }

 private:
  NetworkPtr network_;
};

class LoopbackFactory final : public TransportFactory {
 public:
  static LoopbackFactory& Get() {
    static auto* const factory = [] {
      auto* const made = new LoopbackFactory();
      Register(made);
      return made;
    }();
    return *factory;
  }

  std::string_view scheme() const override { return "loopback"; }
  absl::StatusOr<std::unique_ptr<ClientTransport>> CreateClient(
      std::string_view address, const TransportOptions& options) override {
    absl::StatusOr<NetworkPtr> network = Find(address);
    if (!network.ok()) return network.status();
    return std::make_unique<LoopbackClient>(*std::move(network));
  }
  absl::StatusOr<std::unique_ptr<ServerTransport>> CreateServer(
      const TransportOptions& options) override {
    return std::make_unique<LoopbackServer>();
  }

  std::string Add(NetworkPtr network) {
    Lock lock(mutex_);
    const std::string address =
        absl::StrCat("loopback://network", ++last_number_, ":1");
    networks_[address] = std::move(network);
    return address;
  }
  void Remove(const std::string& address) {
    Lock lock(mutex_);
    networks_.erase(address);
  }
  absl::StatusOr<NetworkPtr> Find(std::string_view address) {
    Lock lock(mutex_);
    const auto found = networks_.find(std::string(address));
    if (found != networks_.end()) return found->second;
    return absl::InvalidArgumentError("no such loopback network");
  }

 private:
  std::mutex mutex_;
  int last_number_ = 0;
  std::map<std::string, NetworkPtr> networks_;
};

absl::StatusOr<int> LoopbackServer::AddListeningPort(std::string_view address) {
  absl::StatusOr<NetworkPtr> network = LoopbackFactory::Get().Find(address);
  if (!network.ok()) return network.status();
  network_ = *std::move(network);
  return 1;
}

}  // namespace

LoopbackNetwork::LoopbackNetwork(const LoopbackOptions& options)
    : address_(LoopbackFactory::Get().Add(std::make_shared<Impl>(options))),
      impl_(*LoopbackFactory::Get().Find(address_)) {}

LoopbackNetwork::~LoopbackNetwork() {
  LoopbackFactory::Get().Remove(address_);
  impl_->Stop();
}

void LoopbackNetwork::DropConnections() { impl_->DropAll(); }
void LoopbackNetwork::set_unreachable(bool unreachable) {
  impl_->set_unreachable(unreachable);
}
size_t LoopbackNetwork::open_calls() const { return impl_->open_calls(); }
void LoopbackNetwork::WaitUntilIdle() const { impl_->WaitUntilIdle(); }
uint64_t LoopbackNetwork::bytes_in_use() const {
  return impl_->memory().bytes_in_use();
}
void LoopbackNetwork::ReplaceNextResponse(const RawFrame& frame) {
  impl_->Replace(/*response=*/true, frame);
}
void LoopbackNetwork::ReplaceNextRequest(const RawFrame& frame) {
  impl_->Replace(/*response=*/false, frame);
}

}  // namespace rpc::testing
