#include "tests/rpc/loopback_network.h"

#include "absl/time/clock.h"

namespace rpc::testing {
namespace {

void PushSent(LoopbackSide& side) {
  Delivery sent;
  sent.type = Delivery::kSent;
  side.pending.push_back(std::move(sent));
}

}  // namespace

void LoopbackNetwork::Impl::Stop() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  timer_.join();
}

uint32_t LoopbackNetwork::Impl::RegisterMethod(std::string_view path) {
  Lock lock(mutex_);
  for (size_t i = 0; i < methods_.size(); ++i) {
    if (methods_[i].path == path) return static_cast<uint32_t>(i);
  }
  methods_.push_back({std::string(path)});
  return static_cast<uint32_t>(methods_.size() - 1);
}

bool LoopbackNetwork::Impl::SetServer(ServerTransport* transport,
                                      ServerSink* sink) {
  Lock lock(mutex_);
  if (server_ != nullptr) return false;
  server_ = transport;
  server_sink_ = sink;
  for (Method& method : methods_) method.asked_lane.reset();
  std::vector<CallPtr> to_deliver;
  for (auto& [handle, call] : calls_) {
    if (call->waiting && !call->closed) to_deliver.push_back(call);
  }
  for (const CallPtr& call : to_deliver) {
    call->waiting = false;
    if (!call->client.ended) PushSent(call->client);
    Admit(call, *std::exchange(call->parked, std::nullopt));
  }
  changed_.notify_all();
  Drive(lock, to_deliver);
  return true;
}

void LoopbackNetwork::Impl::Shutdown(ServerTransport* transport,
                                     absl::Time deadline) {
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

CallHandle LoopbackNetwork::Impl::StartCall(const CallOptions& options,
                                            OutgoingFrame frame,
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
    if (!call->client.ended) PushSent(call->client);
    Admit(call, std::move(first));
  } else if (options.wait_for_ready == WaitForReady::kYes) {
    call->waiting = true;
    call->parked = std::move(first);
  } else {
    Close(call, absl::UnavailableError("nobody listens"), nullptr,
          /*may_have_run=*/false);
  }
  Drive(lock, call);
  return handle;
}

void LoopbackNetwork::Impl::Send(CallHandle handle, bool from_server,
                                 OutgoingFrame frame) {
  Lock lock(mutex_);
  const CallPtr call = Find(handle);
  if (call == nullptr || call->closed) return;
  LoopbackSide& from = from_server ? call->server : call->client;
  LoopbackSide& to = from_server ? call->client : call->server;
  if (from.ended) return;
  from.ended = frame.end;
  Delivery delivery = ToDelivery(
      std::move(frame), from_server ? replace_response_ : replace_request_);
  if (from_server && delivery.frame.end) from.ended = true;
  if (!from.ended) PushSent(from);
  to.pending.push_back(std::move(delivery));
  // Whether the client has ended or not.
  if (call->server.ended) Close(call, absl::OkStatus(), nullptr);
  Drive(lock, call);
}

void LoopbackNetwork::Impl::Cancel(CallHandle handle, bool from_server,
                                   absl::Status reason) {
  Lock lock(mutex_);
  const CallPtr call = Find(handle);
  if (call == nullptr) return;
  Close(call, std::move(reason), from_server ? &call->server : &call->client);
  Drive(lock, call);
}

void LoopbackNetwork::Impl::DropAll() {
  Lock lock(mutex_);
  std::vector<CallPtr> calls;
  for (auto& [handle, call] : calls_) calls.push_back(call);
  for (const CallPtr& call : calls) {
    Close(call, absl::UnavailableError("the connection broke"), nullptr);
  }
  Drive(lock, calls);
}

void LoopbackNetwork::Impl::SetLane(uint32_t lane) {
  Lock lock(mutex_);
  lane_ = lane;
}

void LoopbackNetwork::Impl::set_unreachable(bool unreachable) {
  Lock lock(mutex_);
  unreachable_ = unreachable;
  changed_.notify_all();
}

ConnectivityState LoopbackNetwork::Impl::GetState(bool try_to_connect) {
  Lock lock(mutex_);
  if (try_to_connect) {
    tried_ = true;
    changed_.notify_all();
  }
  return State();
}

bool LoopbackNetwork::Impl::WaitForStateChange(ConnectivityState last,
                                               absl::Time deadline) {
  Lock lock(mutex_);
  return WaitUntil(lock, deadline, [&] { return State() != last; });
}

size_t LoopbackNetwork::Impl::open_calls() {
  Lock lock(mutex_);
  return calls_.size();
}

void LoopbackNetwork::Impl::WaitUntilIdle() {
  Lock lock(mutex_);
  WaitUntil(lock, absl::InfiniteFuture(), [&] { return calls_.empty(); });
}

void LoopbackNetwork::Impl::Replace(bool response, const RawFrame& frame) {
  Lock lock(mutex_);
  (response ? replace_response_ : replace_request_) = frame;
}

CallPtr LoopbackNetwork::Impl::NewCall() {
  CallPtr call;
  if (spares_.empty()) {
    call = std::make_shared<LoopbackCall>();
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

CallPtr LoopbackNetwork::Impl::Find(CallHandle handle) {
  const auto found = calls_.find(handle.value);
  return found == calls_.end() ? nullptr : found->second;
}

Delivery LoopbackNetwork::Impl::ToDelivery(OutgoingFrame frame,
                                           std::optional<RawFrame>& replace) {
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

void LoopbackNetwork::Impl::Admit(const CallPtr& call, Delivery first) {
  call->server_transport = server_;
  call->server_sink = server_sink_;
  call->server.pending.push_back(std::move(first));
}

void LoopbackNetwork::Impl::Close(const CallPtr& call, absl::Status status,
                                  const LoopbackSide* initiator,
                                  bool may_have_run) {
  if (call->closed) return;
  call->closed = true;
  call->waiting = false;
  call->parked.reset();
  if (!status.ok()) {
    call->cut_off.store(true, std::memory_order_relaxed);
    if (call->server.running && call->server_sink != nullptr) {
      call->server_sink->OnCutOff(CallHandle{call->handle});
    }
  }
  if (!call->server.known && !call->server.running &&
      call->server_sink == nullptr) {
    may_have_run = false;
  }
  for (LoopbackSide* side : {&call->client, &call->server}) {
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

void LoopbackNetwork::Impl::Drive(Lock& lock, const CallPtr& call) {
  DriveSide(lock, call, call->client);
  DriveSide(lock, call, call->server);
  Forget(call);
}

void LoopbackNetwork::Impl::Drive(Lock& lock,
                                  const std::vector<CallPtr>& calls) {
  for (const CallPtr& call : calls) Drive(lock, call);
}

void LoopbackNetwork::Impl::DriveSide(Lock& lock, const CallPtr& call,
                                      LoopbackSide& side) {
  if (side.running || side.pending.empty()) return;
  side.running = true;
  if (threads_.empty()) {
    Deliver(lock, call, side);
  } else {
    ready_.push_back({call, &side});
    changed_.notify_all();
  }
}

void LoopbackNetwork::Impl::Deliver(Lock& lock, const CallPtr& call,
                                    LoopbackSide& side) {
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
      Close(call, absl::UnimplementedError("the method is not known"), nullptr,
            /*may_have_run=*/false);
      DriveSide(lock, call, call->client);
    }
  }
  side.running = false;
  Forget(call);
  changed_.notify_all();
}

bool LoopbackNetwork::Impl::DeliverOne(LoopbackCall& call, LoopbackSide& side,
                                       Delivery& delivery, bool opens) {
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

CallSink* LoopbackNetwork::Impl::DeliverCall(LoopbackCall& call,
                                             IncomingFrame& frame) {
  Lock lock(mutex_);
  Method& method = methods_[call.method];
  const uint32_t lane = lane_;
  const bool asked = method.asked_lane == lane;
  const void* id = method.id;
  lock.unlock();
  if (!asked) {
    id = call.server_sink->OnMethod(method.path, lane);
    lock.lock();
    method.asked_lane = lane;
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

void LoopbackNetwork::Impl::Forget(const CallPtr& call) {
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
  for (LoopbackSide* side : {&call->client, &call->server}) {
    side->sink = nullptr;
    side->known = side->ended = false;
  }
  call->server_transport = nullptr;
  call->server_sink = nullptr;
  spares_.push_back(call);
}

void LoopbackNetwork::Impl::WaitForCalls(Lock& lock, ServerTransport* transport,
                                         absl::Time deadline) {
  WaitUntil(lock, deadline, [&] {
    for (const auto& [handle, call] : calls_) {
      if (call->server_transport == transport) return false;
    }
    return true;
  });
}

ConnectivityState LoopbackNetwork::Impl::State() const {
  if (!tried_) return ConnectivityState::kIdle;
  return server_ != nullptr && !unreachable_
             ? ConnectivityState::kReady
             : ConnectivityState::kTransientFailure;
}

void LoopbackNetwork::Impl::Work() {
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

void LoopbackNetwork::Impl::KeepTime() {
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

}  // namespace rpc::testing
