// The seam between the RPC layer and what carries its calls.
//
// rpc/ owns this interface and everything a user sees: methods, messages,
// metadata, status. A transport carries frames of calls between two endpoints
// and knows no protobuf and no metadata; rpc/ knows no verbs. The transport of
// this project is rdma_transport/; tests of rpc/ run on one of their own.
//
// A call is two sequences of frames, one each way. The client's first frame
// opens the call and names its method; the frame with `end` set is the last of
// its direction. A unary call is one frame each way, both with `end`. Streams
// are the same with more frames.
//
//   client                                server
//   StartCall(method, frame{end})  ---->  ServerSink::OnCall(frame) -> sink
//   sink->OnFrame(frame{end})      <----  Send(call, frame{end})
//   sink->OnClosed(OK)                    sink->OnClosed(OK)
//
// The client's two may be one, OnOnlyMessage.
//
// Each direction of a call has a window in bytes, so that a slow reader holds
// back its stream and nothing else: frames that find none left wait, and OnSent
// tells when they went (or Send's result, at once). What a frame took
// (IncomingFrame::window_bytes) the receiver gives back with Release once its
// application has taken the message. A direction's last frame takes nothing.
//
// Threads: the functions of ClientTransport and ServerTransport may be called
// from any thread, also from inside a sink's callback. A sink's callbacks run
// one at a time, on whichever thread drives the transport at that moment; no
// lock of the transport is held then, so they may call back into it.
//
// Errors are absl::Status; their codes are gRPC's. A transport never passes off
// part of a message as the whole: a frame arrives whole, or the call is closed
// with a status. Who takes an ArrivingMessage sees that it ends early.
#ifndef VERBENA_RPC_TRANSPORT_H_
#define VERBENA_RPC_TRANSPORT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rpc/buffer.h"

namespace rpc {

// Names one call of one transport. A handle outlives its call: what is said
// about a call that is over has no effect.
struct CallHandle {
  uint64_t value = 0;  // 0: no call

  explicit operator bool() const { return value != 0; }
  bool operator==(const CallHandle&) const = default;
};

// What a transport wants in front of a small message, at most.
inline constexpr size_t kSmallMessageRoom = 32;

// Who drives the transport once a call has begun; what spares handing it over.
enum class NextWait : uint8_t {
  kUnknown,
  // Threads in WaitAsGuest, one of which comes soon: nobody else hears of this
  // call, and so nobody else need be called to drive until then.
  kAsGuest,
  // The calling thread calls Wait right after this, whatever became of the
  // call, and waits for nothing else before: the transport may stay this
  // thread's in between.
  kAtOnce,
};

// A message that travels while it is still being written: the peer fetches what
// is there, and so sending takes the longer of the two times instead of both.
// The writer's, from any thread.
class GrowingMessage {
 public:
  virtual ~GrowingMessage() = default;

  // The first `bytes` are written, and stay as they are. Ends with all of them,
  // or with Fail. The writer keeps its transport meanwhile, as by a call that
  // is not over for rpc/.
  virtual void SetWritten(uint64_t bytes) = 0;
  // All of them. `next_wait`: of the thread, as in CallOptions.
  virtual void SetAllWritten(NextWait next_wait) = 0;
  // It will never be complete: its call ends with `why` (not OK) on both sides.
  virtual void Fail(const absl::Status& why) = 0;
};

// A message that is read while it still arrives: what takes it in has most of
// the work done when the last byte comes, and the transport need not keep all
// of it. One thread's, which is in OnCall or OnFrame.
class ArrivingMessage {
 public:
  virtual ~ArrivingMessage() = default;

  virtual uint64_t total_bytes() const = 0;
  // The next piece, for which that of the last call is given up. Waits until it
  // is there. Empty at the end, and where the rest will not come, as the call
  // was cut off.
  virtual absl::Span<const std::byte> Next() = 0;

  // Whether ReadInto is of use: the transport can store bytes anywhere, without
  // having them in memory of its own first.
  virtual bool can_read_into() const { return false; }
  // The bytes behind the piece that Next gave last, which is given up, right to
  // where they are wanted; waits until they are there. False where they will
  // not all come. What it stored until then is any of them. REQUIRES:
  // can_read_into(), and that there are so many.
  virtual bool ReadInto(absl::Span<std::byte> /*to*/) { return false; }
};

// What of an OutgoingFrame is plain values.
struct OutgoingFields {
  // rpc/'s own header (metadata, a status' text): opaque to the transport. At
  // most Limits::max_header_bytes. Usually empty.
  absl::Span<const std::byte> header;

  // The message: none, or one of the two. A message of up to
  // Limits::copy_message_bytes is best serialized on the stack and given as
  // `small_message`; a larger one is written into AllocateBuffer's memory. An
  // empty message is `has_message` with both empty.
  absl::Span<const std::byte> small_message;
  // Bytes in front of `small_message` that the transport may write to: with
  // kSmallMessageRoom of them, it needs not copy the message once more.
  size_t small_message_room;
  bool has_message;

  // The last frame of this direction.
  bool end;
  // Server, within OnCall and on its thread: OnCall returns right after this.
  // The transport may stay this thread's until then.
  bool last_act;
  // Where the frame leaves at once, Send may say so instead of OnSent.
  bool sent_by_result;
  // With a server's `end`: the call's status code as gRPC numbers it. The
  // transport carries it and does not look at it.
  uint32_t status_code;
};

// What rpc/ sends: nothing, to begin with. The transport takes the chains over;
// `header` and `small_message` are only read during the call that takes the
// frame.
struct OutgoingFrame : OutgoingFields {
  // Three stores, where members that each clear themselves are nine.
  OutgoingFrame() {
    static_assert(offsetof(OutgoingFields, status_code) + sizeof(status_code) ==
                      sizeof(OutgoingFields),
                  "no room behind it for what follows");
    std::memset(static_cast<void*>(static_cast<OutgoingFields*>(this)), 0,
                sizeof(OutgoingFields));
  }

  BufferChain message;
  // From GrowMessage, where `message`, one buffer of AllocateBuffer's, is still
  // to be written. Not with small messages.
  std::shared_ptr<GrowingMessage> growing;

  // Bytes beside the message. Registered memory (AllocateBuffer's, or what an
  // IncomingFrame held) is not copied where it is longer than a frame; other
  // memory is copied once.
  BufferChain attachment;
};

// What arrives. Valid during OnFrame; a chain that is moved out stays valid,
// and the transport replaces the receive buffer it may hold.
struct IncomingFrame {
  IncomingFrame() = default;
  // The last of its direction, a message with nothing beside it so far.
  IncomingFrame(Buffer only_message, uint32_t code)
      : has_message(true),
        message(std::move(only_message)),
        end(true),
        status_code(code) {}

  absl::Span<const std::byte> header;
  bool has_message = false;
  BufferChain message;
  // Instead of `message`, where the sink parses what arrives: valid in OnCall
  // or OnFrame, after which the rest of it is dropped (on a client, with the
  // call).
  ArrivingMessage* arriving = nullptr;
  BufferChain attachment;
  bool end = false;
  uint32_t status_code = 0;
  // To be given back by Release, unless the frame is the last.
  uint64_t window_bytes = 0;

  uint64_t message_bytes() const {
    return arriving == nullptr ? message.size() : arriving->total_bytes();
  }
};

// How a call ended, as the transport saw it.
struct CallOutcome {
  // OK: both directions ended in order. Otherwise why the call was cut off:
  // UNAVAILABLE (connection), DEADLINE_EXCEEDED, CANCELLED (either side),
  // RESOURCE_EXHAUSTED (a limit, which the text names), INTERNAL (the peer
  // broke the protocol).
  absl::Status status;
  // False when it is certain that no handler of the peer saw the call, so that
  // repeating it is safe. Always true where `status` is OK.
  bool may_have_run = true;
};

// One call, as its owner in rpc/ hears of it. Callbacks run one at a time and
// never after OnClosed.
class CallSink {
 public:
  virtual ~CallSink() = default;

  // What ServerSink::OnCall returns for a call that rpc/ has done with, once
  // its last frame is given to Send: nobody hears of its end, whenever that is.
  // A transport need not make its callbacks, which do nothing.
  static CallSink* Nobody();

  // The call begins, and StartCall will return {}. Within StartCall and before
  // anything is sent, where the transport can promise that this thread will
  // call nothing of the sink's any more before it has left StartCall. False:
  // not wanted, StartCall is to return the handle. From here on the other
  // callbacks may come, on other threads.
  virtual bool OnStarted(CallHandle /*handle*/) { return false; }

  // A frame came, in the order sent.
  virtual void OnFrame(IncomingFrame& frame) = 0;

  // On a transport on top of others: which peer this is the call of, in gRPC's
  // form ("ipv4:127.0.0.1:50051"). At most once, before the frames that come
  // from there. Default: not interested.
  virtual void OnPeer(std::string_view /*peer*/) {}

  // The memory of one frame given to Send (or StartCall) is no longer used by
  // the transport nor readable by the peer, and the next may be sent without
  // piling up. Not for a direction's last frame, nor once the call is closed.
  // Default: not interested.
  virtual void OnSent() {}

  // The call is over; the last callback, exactly once. The transport forgets
  // the sink before it calls this, so the sink may delete itself.
  virtual void OnClosed(const CallOutcome& outcome) = 0;

  // Client: OnFrame and OnClosed in one go, of a call whose only frame is an OK
  // and this message, which must not be kept: the sink may delete itself. A
  // transport may call it for the two. Where something may be beside it, `both`
  // is not null: the message, and behind it the attachment, if any, which the
  // sink takes over. False, which is the default: not taken, and nothing
  // happened; the two follow.
  virtual bool OnOnlyMessage(std::string_view /*message*/, Buffer* /*both*/) {
    return false;
  }

  // Client: whether a large last message may be given to OnFrame now, on this
  // thread, as an ArrivingMessage. Such a callback is not quick.
  virtual bool ParsesWhatArrives() const { return false; }

  // Server: whether these callbacks never block for long (a few microseconds):
  // the transport need not let another thread take the polling over meanwhile.
  // They must not call Wait then. Asked once, when it gets the sink. A client
  // says so by CallOptions::quick.
  virtual bool IsQuick() const { return false; }
};

namespace internal {

class NobodySink final : public CallSink {
 public:
  void OnFrame(IncomingFrame& /*frame*/) override {}
  void OnClosed(const CallOutcome& /*outcome*/) override {}
  bool IsQuick() const override { return true; }
};

// Never destroyed: servers may still be there when the process's objects are.
union NobodyForever {
  constexpr NobodyForever() : sink() {}
  ~NobodyForever() {}
  NobodySink sink;
};
inline constinit NobodyForever nobody_forever;

}  // namespace internal

inline CallSink* CallSink::Nobody() { return &internal::nobody_forever.sink; }

// A flag that one thread sets once and others wait for; what a blocking call
// waits on. Setting costs one exchange where nobody sleeps.
class Event {
 public:
  // Any thread. What was written before is visible to whoever sees is_set(). A
  // waiter may destroy the event as soon as it sees it set; Set touches it no
  // more after that.
  void Set();
  // The same by the waiter itself, which so is not asleep.
  void SetByWaiter() { state_.store(kSet, std::memory_order_relaxed); }
  bool is_set() const { return state_.load(std::memory_order_seq_cst) == kSet; }
  // Sleeps until it is set or `deadline` passes; returns is_set().
  bool WaitUntil(absl::Time deadline);
  // For reuse once nobody can be in Set or WaitUntil.
  void Reset() { state_.store(kClear, std::memory_order_relaxed); }

  // For transports, which may need a waiting thread for something else. The one
  // waiter announces itself, looks once more for a reason to stay awake, and
  // then sleeps until Set or Nudge, whichever comes after the announcement.
  void PrepareSleep();
  void Sleep();
  void CancelSleep();
  // Wakes the waiter without setting. REQUIRES: the event is alive.
  void Nudge();

 private:
  enum : uint32_t { kClear, kWaiting, kSet };
  std::atomic<uint32_t> state_{kClear};
};

// What a peer's frames are held to, and what rpc/ must keep to.
struct Limits {
  uint32_t max_header_bytes = 0;      // of OutgoingFrame::header
  uint32_t copy_message_bytes = 0;    // see OutgoingFrame::small_message
  uint64_t max_message_bytes = 0;     // of one message, sent
  uint64_t max_attachment_bytes = 0;  // of one attachment, sent
  // What each direction of a call may have on its way to begin with. A receiver
  // that gives back less at a time than a quarter of it only costs frames, one
  // that holds back more than half stalls the peer.
  uint64_t stream_window_bytes = 0;
};

// gRPC's connectivity states (its "Connectivity Semantics" document).
enum class ConnectivityState {
  kIdle,
  kConnecting,
  kReady,
  kTransientFailure,
  kShutdown,
};

// Hears of a transport's states. Called one at a time, in their order, on
// whichever thread the state changes, with locks held: must not block, and must
// not call the transport.
class StateListener {
 public:
  // `why`: with kTransientFailure, what failed; else OK.
  virtual void OnState(ConnectivityState state, const absl::Status& why) = 0;

 protected:
  ~StateListener() = default;
};

// What RDMA devices are told of the fabric (docs/hardware.md); of no meaning
// where there is no wire. Values as of ibv_modify_qp(3).
struct FabricOptions {
  // Connections are set up over TCP instead of by rdma_cm(7).
  bool set_up_by_tcp = false;
  uint8_t timeout = 14;     // of an acknowledgement: 4.096 us * 2^timeout
  uint8_t retry_count = 6;  // then the peer is given up
  uint8_t rnr_retry_count = 6;
  uint8_t min_rnr_timer = 12;  // IBTA encoding; 12 is 0.64 ms
  uint8_t traffic_class = 0;   // 0: the route's
  uint32_t mtu_bytes = 0;      // 256 to 4096; 0: the path's
};

// Options of either side. Defaults are stated here; every limit that is reached
// ends in a status.
struct TransportOptions {
  // "auto", "soft", or a verbs device's name such as "mlx5_0".
  std::string device = "auto";

  // Most bytes of one received message / attachment; a larger one is refused
  // with RESOURCE_EXHAUSTED before a byte of it moves.
  uint64_t max_receive_message_bytes = std::numeric_limits<uint64_t>::max();
  uint64_t max_receive_attachment_bytes = std::numeric_limits<uint64_t>::max();

  // Most bytes of memory that this side registers for large messages and
  // attachments; 0: half of the machine's memory. Receive buffers have a budget
  // of their own, receive_budget_bytes.
  uint64_t memory_budget_bytes = 0;
  uint64_t receive_budget_bytes = uint64_t{64} << 20;

  // Frames of up to this many bytes are sent eagerly, larger messages by
  // rendezvous. 0: the transport's default.
  uint32_t eager_limit_bytes = 0;

  // How long a thread polls before it sleeps. Negative: the default.
  absl::Duration spin = absl::Microseconds(-1);

  // One thread at a time drives a poller, so that this many can work at once. A
  // server's connections, and a process's endpoints, are shared out among their
  // pollers; receive_budget_bytes is each poller's.
  static constexpr uint32_t kMaxPollers = 16;
  uint32_t pollers = 1;

  // A peer that has not said within this time after a call's end that it reads
  // the call's large message no more is cut off, so that the memory is free. A
  // client that fetches an answer has 1 s for each 16 MiB besides, and so has a
  // peer for completing a message that it sends while it writes it.
  absl::Duration offer_grace = absl::Seconds(10);

  // A connection on which nothing came for the first is asked for a sign of
  // life, and closed where none comes within the second. One without calls is
  // asked after six times the first, and not at all on the software device,
  // where a peer's death shows by itself, unless keepalive_without_calls.
  absl::Duration keepalive_time = absl::Seconds(10);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  bool keepalive_without_calls = false;

  FabricOptions fabric;

  // Client: channels to the same address with the same options share one
  // connection.
  bool share_connection = true;
  // Client: connecting.
  absl::Duration connect_timeout = absl::Seconds(20);
  absl::Duration initial_backoff = absl::Seconds(1);
  absl::Duration min_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(120);
  // Client: a connection without calls is closed after this; it opens again
  // with the next call.
  absl::Duration idle_timeout = absl::Minutes(30);

  // Either side: peers on the software device may be of other users. Both sides
  // have to say so, as they share memory.
  bool allow_other_users = false;
  // Server: most connections; further ones are rejected with the reason.
  uint32_t max_connections = 4096;
  // Server: a connection's client is asked to go elsewhere with new calls once
  // the connection is so old (10 % more or less, by chance), or has been
  // without calls for so long. What still runs at the end of the grace after
  // that age is ended.
  absl::Duration max_connection_age = absl::InfiniteDuration();
  absl::Duration max_connection_age_grace = absl::InfiniteDuration();
  absl::Duration max_connection_idle = absl::InfiniteDuration();
};

// gRPC's wait_for_ready: whether a call waits for a connection (until its
// deadline) or ends with UNAVAILABLE when connecting fails. kDefault is what
// the channel's configuration says, and else kNo.
enum class WaitForReady : uint8_t { kDefault, kNo, kYes };

// absl::InfiniteFuture(), for members that begin so and are copied soon after:
// in memory, so that it is stored in one piece, as it is loaded to be copied. A
// compiler that knows the value stores two parts, and a load that takes them
// together waits until these, and all stores before them, have left the CPU.
extern const absl::Time kNoDeadline;

// Parameters of StartCall.
struct CallOptions {
  uint32_t method = 0;  // from RegisterMethod
  absl::Time deadline = kNoDeadline;
  WaitForReady wait_for_ready = WaitForReady::kDefault;
  NextWait next_wait = NextWait::kUnknown;
  // The sink's callbacks never block for long (a few microseconds), and do not
  // call Wait: the transport need not let another thread poll meanwhile.
  bool quick = false;
};

// One client endpoint: a channel's way to one address.
class ClientTransport {
 public:
  virtual ~ClientTransport() = default;

  virtual const Limits& limits() const = 0;

  // Registers a method by its full path, "/package.Service/Method"; the same
  // path gets the same number. Not for the hot path.
  virtual uint32_t RegisterMethod(std::string_view path) = 0;

  // Opens a call and sends its first frame. `sink` hears of it until OnClosed,
  // which may come before StartCall returns, and does so whatever goes wrong.
  // The result is {} where the sink was told by OnStarted.
  virtual CallHandle StartCall(const CallOptions& options,
                               OutgoingFrame&& frame, CallSink* sink) = 0;

  // Sends a further frame. No effect once the call is closed or has ended its
  // direction. True: it is sent, and OnSent will not tell (only where
  // `frame.sent_by_result`).
  virtual bool Send(CallHandle call, OutgoingFrame&& frame) = 0;

  // The application has taken messages that took so many bytes of the stream's
  // window. `drained`: all that came, so that the window may be what holds the
  // stream back, and grow.
  virtual void Release(CallHandle call, uint64_t window_bytes,
                       bool drained) = 0;

  // Closes the call with `reason` (not OK) and tells the peer. OnClosed comes
  // soon after, or before this returns. Memory that the peer may still be
  // reading is kept until it cannot.
  virtual void Cancel(CallHandle call, absl::Status reason) = 0;

  // Blocks until `event` is set, and drives the transport meanwhile where no
  // other thread does. The event must be one that a sink of this transport
  // sets, or WakeWaiters comes after it. Also what ends a StartCall with
  // NextWait::kAtOnce.
  virtual void Wait(Event& event) = 0;
  // The same for a thread that comes again and again, for whatever was begun
  // with NextWait::kAsGuest. The default: as Wait.
  virtual void WaitAsGuest(Event& event) { Wait(event); }
  // A thread that did so goes to another transport, or does not come any more.
  // Forgetting it costs calls a millisecond or two, at most six.
  virtual void EndVisits() {}
  // Names what a thread in Wait drives: the same for transports that are driven
  // together.
  virtual const void* driven() const { return this; }
  // Has threads in Wait look at their events again: for one that something else
  // has set than a callback of this transport.
  virtual void WakeWaiters() = 0;

  // Registered memory for messages and attachments, with some headroom. What
  // its block has behind it (Buffer::tailroom) is the caller's, too.
  // RESOURCE_EXHAUSTED at the budget: the text names the budget.
  virtual absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) = 0;
  // For the frame of a message of so many bytes that is written after it is
  // sent. Null, as by default: it has to be, or is better, complete before.
  virtual std::shared_ptr<GrowingMessage> GrowMessage(size_t bytes) {
    return nullptr;
  }

  // The endpoint's state; with `try_to_connect`, an idle one starts connecting.
  virtual ConnectivityState GetState(bool try_to_connect) = 0;
  // Blocks until the state is another than `last_observed`; false at
  // `deadline`.
  virtual bool WaitForStateChange(ConnectivityState last_observed,
                                  absl::Time deadline) = 0;

  // Has connections that failed try again now, as if they had not failed
  // before. Default: there is no pause between attempts.
  virtual void ResetBackoff() {}

  // `listener` hears of every change of state from now on, and at once of a
  // failure that lasts, until RemoveStateListener has returned. Default: the
  // state changes within calls of GetState only.
  virtual void AddStateListener(StateListener* listener) {}
  virtual void RemoveStateListener(StateListener* listener) {}

  // The device in use ("soft0", "rxe0"), or "" before the first connection.
  virtual std::string device() const = 0;
  // Who the last connection was to, in gRPC's form ("ipv4:127.0.0.1:50051"), or
  // "" before the first.
  virtual std::string peer() const { return ""; }
};

// What a server hears of new calls. Implemented by rpc/'s server.
class ServerSink {
 public:
  virtual ~ServerSink() = default;

  // A peer named a method for the first time on a connection. The result is
  // given to OnCall for each of its calls; null is a legal value (unknown).
  // `lane`: connections of one lane bring their calls one after the other, and
  // several lanes do at the same time. They are numbered from 0.
  virtual const void* OnMethod(std::string_view path, uint32_t lane) = 0;

  struct Call {
    CallHandle handle;
    const void* method = nullptr;       // what OnMethod gave for this path
    std::string_view path;              // as the peer named it
    absl::Time deadline = kNoDeadline;  // on this host's clock
    std::string_view peer;              // "ipv4:127.0.0.1:40000"
    // Becomes true when the call is cut off (cancelled, past its deadline, its
    // connection lost), also while OnCall still runs. Valid until OnClosed.
    const std::atomic<bool>* cut_off = nullptr;
  };

  // Whether OnCall parses the one message of this method's call there and then,
  // so that a large one may come as an ArrivingMessage.
  virtual bool ParsesWhatArrives(const void* /*method*/) const { return false; }

  // A call came, with its first frame, which is delivered here and not by
  // OnFrame. Returns the call's sink; null closes the call with UNIMPLEMENTED.
  // A handler may run right here, and may block: another thread then takes the
  // polling over. The views of `call` are valid until OnCall returns. Where the
  // call was closed meanwhile, OnClosed comes right after the return.
  virtual CallSink* OnCall(const Call& call, IncomingFrame& frame) = 0;

  // `call` was cut off while one of its callbacks runs, OnCall included, so
  // that OnClosed has to wait. On any thread, perhaps with locks held: must not
  // block, nor call the transport. Default: not interested.
  virtual void OnCutOff(CallHandle /*call*/) {}
};

// One server: listening addresses and the calls that come in.
class ServerTransport {
 public:
  virtual ~ServerTransport() = default;

  virtual const Limits& limits() const = 0;

  // Listens on "HOST:PORT" or "rdma://HOST:PORT"; port 0 picks a free one.
  // Returns the port. Before Start. Errors: INVALID_ARGUMENT (the address),
  // ALREADY_EXISTS (the port is in use), UNAVAILABLE (no device for it).
  virtual absl::StatusOr<int> AddListeningPort(std::string_view address) = 0;

  // Begins to accept. `sink` must outlive the transport's Shutdown.
  virtual absl::Status Start(ServerSink* sink) = 0;

  // See ClientTransport.
  virtual bool Send(CallHandle call, OutgoingFrame&& frame) = 0;
  virtual void Release(CallHandle call, uint64_t window_bytes,
                       bool drained) = 0;
  // Ends the call with `reason` on both sides.
  virtual void Cancel(CallHandle call, absl::Status reason) = 0;

  // Drives the transport until `event` is set, where no other thread does, or
  // sleeps; callbacks of calls run on this thread. For threads that would wait
  // for what calls bring anyway. Returns early where there is nothing to drive,
  // or not any more: at the latest by Shutdown, whose end it holds up.
  // The default: at once.
  virtual void Wait(Event& event) {}
  // As ClientTransport::WakeWaiters.
  virtual void WakeWaiters() {}

  // As ClientTransport::AllocateBuffer, for what is sent with `call`.
  virtual absl::StatusOr<Buffer> AllocateBuffer(CallHandle call,
                                                size_t bytes) = 0;
  // See ClientTransport.
  virtual std::shared_ptr<GrowingMessage> GrowMessage(CallHandle call,
                                                      size_t bytes) {
    return nullptr;
  }

  // Refuses new calls, lets running ones finish until `deadline`, then cancels
  // what is left, and closes every connection. Returns when no callback runs or
  // will run. Not from inside a callback. A second call waits for the first.
  virtual void Shutdown(absl::Time deadline) = 0;

  virtual std::string device() const = 0;
};

// Makes transports for the addresses of one scheme. Linking a transport
// registers its factory.
class TransportFactory {
 public:
  virtual ~TransportFactory() = default;

  virtual std::string_view scheme() const = 0;  // "rdma"
  // `address` is "HOST:PORT" or "SCHEME://HOST:PORT". INVALID_ARGUMENT says
  // what is wrong with it; nothing connects yet.
  virtual absl::StatusOr<std::unique_ptr<ClientTransport>> CreateClient(
      std::string_view address, const TransportOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<ServerTransport>> CreateServer(
      const TransportOptions& options) = 0;

  // `factory` lives as long as the process. For static initializers and main.
  static void Register(TransportFactory* factory);
  // The factory for an address; one without a scheme gets the first registered.
  // FAILED_PRECONDITION where nothing suitable is linked, and says what to
  // link.
  static absl::StatusOr<TransportFactory*> ForAddress(std::string_view address);
};

}  // namespace rpc

#endif  // VERBENA_RPC_TRANSPORT_H_
