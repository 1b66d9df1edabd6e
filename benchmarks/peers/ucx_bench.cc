// UCX (OpenUCX, UCP): active messages over shared memory, the fastest that it
// has between two processes of one host.
//
//   bazel run -c opt //benchmarks/peers:ucx_bench -- --payload_bytes=64,8K
//
// What a reader has to know to compare:
//  - UCX moves messages; it is no RPC library. Nothing here serializes, looks
//  up
//    methods, keeps deadlines or serves a second client. A message has 8 bytes
//    of header (which call, how many bytes), which any use of more than one
//    message in flight needs.
//  - One worker on each side, UCS_THREAD_MODE_SINGLE, ucp_worker_progress in a
//    loop that never sleeps: UCX's favourite case. No error handling of
//    endpoints, which allows it all transports.
//  - Transports: --ucx_tls, of which UCX chooses. With the default it sends
//    small messages through FIFOs in memory that both sides have mapped (eager:
//    copied in by the sender, out by the receiver), and larger ones by
//    rendezvous: the receiver copies once, by process_vm_readv (CMA). Where it
//    changes over is UCX's own choice (UCX_RNDV_THRESH and the like work).
//    xpmem, which would do without the kernel, is no part of Debian.
//  - The server answers to an endpoint that the client's first message brought
//    (UCP_AM_SEND_FLAG_REPLY); it need not come with each message.
//
// latency and rate: an active message of payload_bytes there, and one of the
// same size back. Eager data is echoed right out of UCX's receive buffer, out
// of the callback. The client copies what it gets into a buffer of its own, as
// else nobody would have read it; --leave_data leaves it in UCX's buffer, as
// UCX's own ucx_perftest does. Rendezvous is fetched into buffers that are
// there before. In rate mode the clock is read once for all answers of one call
// of ucp_worker_progress.
//
// rate with --one_way: messages go one way only, as in the "5.9 M messages/s"
// that is told of UCX. That is no rate of calls: nothing comes back but one
// message for 64. Up to 256 are on their way, --concurrency does not count, and
// a "latency" is that of 64 messages until they are acknowledged. Beware of
// gigabytes_per_s in these lines: it counts both ways, as for echoes.
//
// bandwidth: the payload one way, an active message of 8 bytes back when all of
// it has arrived in the server's memory, in one buffer for each call in flight.
//
// Sizes are checked with each message, and contents with every 256th: of an
// echo by comparing, of a bandwidth call by a checksum that the server makes.
#include <ucp/api/ucp.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmarks/peers/peer_main.h"
#include "benchmarks/peers/raw_payloads.h"
#include "benchmarks/peers/spinning.h"
#include "benchmarks/recorder.h"
#include "benchmarks/test_pattern.h"
#include "gflags/gflags.h"

DEFINE_string(ucx_tls, "posix,sysv,cma", "the transports UCX chooses from");
DEFINE_bool(one_way, false,
            "--mode=rate: send messages one way, not echoes; an "
            "acknowledgement comes for each 64");
DEFINE_bool(leave_data, false,
            "leave eager data in UCX's receive buffers, unread");

namespace benchmarks {
namespace {

using Mode = PeerWorkload::Mode;

constexpr uint32_t kGroup = 64;  // messages of --one_way to an acknowledgement
constexpr uint32_t kGroups = 4;  // on their way
constexpr size_t kMostOneWayBytes = 64 << 10;

enum MessageId : unsigned {
  kSetup,  // to the server; data: Setup
  kReady,
  kEcho,  // to the server
  kAnswer,
  kPut,         // to the server
  kPutChecked,  // the same, and the receipt has the checksum as data
  kReceipt,
  kOneWay,  // to the server
  kGroupReceipt,
};

struct Header {
  uint32_t slot;   // of the call; of a group: its number
  uint32_t bytes;  // of the payload; from the server: that it received
};

struct Setup {
  uint64_t payload_bytes;
  uint64_t slots;
};

absl::Status ToStatus(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, ": ", ucs_status_string(status)));
}

// What UCX still uses of a call.
struct Pending {
  class Worker* worker = nullptr;
  int sends = 0;
  void* held = nullptr;  // received data that is being sent
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    if (endpoint_ != nullptr) Close();
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }

  absl::Status Open();
  absl::StatusOr<std::string> HexAddress() const;
  absl::Status Connect(const std::string& hex_address);

  // Calls T::Method(message) of `object` with each message `id`.
  template <auto Method, typename T>
  absl::Status Handle(MessageId id, T* object);

  // `header` and `data` have to stay until pending->sends is 0 again.
  void Send(ucp_ep_h endpoint, MessageId id, const Header* header,
            const void* data, size_t bytes, Pending* pending,
            uint32_t flags = 0);
  // Fetches rendezvous data. True: it is there; false: `done` will be called
  // with `user_data`.
  bool Fetch(void* descriptor, void* buffer, size_t bytes,
             ucp_am_recv_data_nbx_callback_t done, void* user_data);
  // Null: nothing is left to be sent. Else to be asked by IsFlushed.
  ucs_status_ptr_t Flush() {
    ucp_request_param_t param = {};
    return ucp_ep_flush_nbx(endpoint_, &param);
  }
  // Frees the request when it is over.
  static bool IsFlushed(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return true;
    if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
    ucp_request_free(request);
    return true;
  }
  void Release(void* data) { ucp_am_data_release(worker_, data); }

  // Whether there was anything to do.
  bool Progress() { return ucp_worker_progress(worker_) != 0; }

  ucp_ep_h endpoint() const { return endpoint_; }
  // The first thing that went wrong.
  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& status) { status_.Update(status); }

 private:
  static void OnSent(void* request, ucs_status_t status, void* user_data);
  void Close();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  absl::Status status_;
};

absl::Status Worker::Open() {
  ucp_config_t* config;
  absl::Status status =
      ToStatus(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  if (!status.ok()) return status;
  status = ToStatus(ucp_config_modify(config, "TLS", FLAGS_ucx_tls.c_str()),
                    "ucp_config_modify");
  if (status.ok()) {
    ucp_params_t params = {};
    params.field_mask =
        UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_AM;
    status = ToStatus(ucp_init(&params, config, &context_), "ucp_init");
  }
  ucp_config_release(config);
  if (!status.ok()) return status;
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  return ToStatus(ucp_worker_create(context_, &params, &worker_),
                  "ucp_worker_create");
}

absl::StatusOr<std::string> Worker::HexAddress() const {
  ucp_address_t* address;
  size_t bytes;
  const absl::Status status =
      ToStatus(ucp_worker_get_address(worker_, &address, &bytes),
               "ucp_worker_get_address");
  if (!status.ok()) return status;
  const std::string hex = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(address), bytes));
  ucp_worker_release_address(worker_, address);
  return hex;
}

absl::Status Worker::Connect(const std::string& hex_address) {
  const std::string address = absl::HexStringToBytes(hex_address);
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  return ToStatus(ucp_ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
}

// The other side may be gone, so that there is nothing to wait for.
void Worker::Close() {
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  for (int i = 0; i < 1000 && ucp_request_check_status(request) != UCS_OK;
       ++i) {
    ucp_worker_progress(worker_);
  }
  ucp_request_free(request);
}

// A message as the callback gets it.
struct Message {
  MessageId id;
  Header header;
  void* data;  // of a rendezvous: its descriptor
  size_t bytes;
  const ucp_am_recv_param_t* param;

  bool is_rendezvous() const {
    return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  }
  // Whether the receiver may keep the data, by returning UCS_INPROGRESS.
  bool can_be_held() const {
    return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  }
};

template <typename T>
struct Handler {
  T* object;
  MessageId id;
};

template <auto Method, typename T>
absl::Status Worker::Handle(MessageId id, T* object) {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  // Lives as long as the process: a few for each worker.
  params.arg = new Handler<T>{object, id};
  params.cb = [](void* arg, const void* header, size_t header_bytes, void* data,
                 size_t bytes, const ucp_am_recv_param_t* param) {
    const auto& handler = *static_cast<Handler<T>*>(arg);
    Message message = {handler.id, {}, data, bytes, param};
    if (header_bytes == sizeof(Header)) {
      std::memcpy(&message.header, header, sizeof(Header));
    }
    return (handler.object->*Method)(message);
  };
  return ToStatus(ucp_worker_set_am_recv_handler(worker_, &params),
                  "ucp_worker_set_am_recv_handler");
}

void Worker::OnSent(void* request, ucs_status_t status, void* user_data) {
  auto& pending = *static_cast<Pending*>(user_data);
  if (status != UCS_OK) pending.worker->Fail(ToStatus(status, "send"));
  --pending.sends;
  if (pending.held != nullptr) {
    pending.worker->Release(pending.held);
    pending.held = nullptr;
  }
  ucp_request_free(request);
}

void Worker::Send(ucp_ep_h endpoint, MessageId id, const Header* header,
                  const void* data, size_t bytes, Pending* pending,
                  uint32_t flags) {
  pending->worker = this;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = OnSent;
  param.user_data = pending;
  if (flags != 0) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
  }
  const ucs_status_ptr_t request = ucp_am_send_nbx(
      endpoint, id, header, sizeof(*header), data, bytes, &param);
  if (request == nullptr) return;
  if (UCS_PTR_IS_ERR(request)) {
    return Fail(ToStatus(UCS_PTR_STATUS(request), "ucp_am_send_nbx"));
  }
  ++pending->sends;
}

bool Worker::Fetch(void* descriptor, void* buffer, size_t bytes,
                   ucp_am_recv_data_nbx_callback_t done, void* user_data) {
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = done;
  param.user_data = user_data;
  const ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(worker_, descriptor, buffer, bytes, &param);
  if (request == nullptr) return true;
  if (UCS_PTR_IS_ERR(request)) {
    Fail(ToStatus(UCS_PTR_STATUS(request), "ucp_am_recv_data_nbx"));
  }
  return false;
}

// One of the calls that can be in flight; the memory it is received in.
template <typename Side>
struct Slot {
  Side* side = nullptr;
  Pending pending;
  Header header = {};
  uint64_t checksum = 0;
  char* buffer = nullptr;
  MessageId id = kSetup;  // of what is being fetched

  static void OnFetched(void* request, ucs_status_t status, size_t /*bytes*/,
                        void* user_data) {
    auto& slot = *static_cast<Slot*>(user_data);
    ucp_request_free(request);
    if (status != UCS_OK) slot.side->worker().Fail(ToStatus(status, "fetch"));
    slot.side->OnData(slot);
  }
};

// Slots with memory.
template <typename Side>
class Slots {
 public:
  absl::Status Create(Side* side, size_t count, size_t bytes) {
    absl::StatusOr<Memory> memory = Memory::Allocate(count * bytes);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    slots_ = std::vector<Slot<Side>>(count);
    for (size_t i = 0; i < count; ++i) {
      slots_[i].side = side;
      slots_[i].header = {static_cast<uint32_t>(i),
                          static_cast<uint32_t>(bytes)};
      slots_[i].buffer = memory_.data() + i * bytes;
    }
    return absl::OkStatus();
  }

  Slot<Side>* Find(uint32_t index) {
    return index < slots_.size() ? &slots_[index] : nullptr;
  }
  std::vector<Slot<Side>>& all() { return slots_; }
  bool IsIdle() const {
    for (const Slot<Side>& slot : slots_) {
      if (slot.pending.sends != 0) return false;
    }
    return true;
  }

 private:
  std::vector<Slot<Side>> slots_;
  Memory memory_;
};

class UcxServer {
 public:
  using ServerSlot = Slot<UcxServer>;

  absl::StatusOr<std::string> Open() {
    absl::Status status = worker_.Open();
    if (!status.ok()) return status;
    status.Update(worker_.Handle<&UcxServer::OnSetup>(kSetup, this));
    for (const MessageId id : {kEcho, kPut, kPutChecked, kOneWay}) {
      status.Update(worker_.Handle<&UcxServer::OnMessage>(id, this));
    }
    if (!status.ok()) return status;
    return worker_.HexAddress();
  }

  absl::Status Run(int stop_fd) {
    StopWatch watch(stop_fd);
    while (worker_.status().ok()) {
      if (worker_.Progress()) continue;
      if (setup_ && slots_.IsIdle()) SetUp();
      if (watch.MustStop()) break;
    }
    // The client flushed what says that its last fetches are over.
    for (int i = 0; i < 100'000 && !slots_.IsIdle(); ++i) worker_.Progress();
    return worker_.status();
  }

  Worker& worker() { return worker_; }
  // All data of the slot's message is in its buffer.
  void OnData(ServerSlot& slot) { Respond(slot, slot.buffer); }

 private:
  // Not out of the callback: slots may still be in use.
  ucs_status_t OnSetup(const Message& message) {
    Setup setup;
    if (message.bytes != sizeof(setup) || message.is_rendezvous() ||
        (message.param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) {
      worker_.Fail(absl::InternalError("a set-up that is none"));
      return UCS_OK;
    }
    std::memcpy(&setup, message.data, sizeof(setup));
    setup_ = setup;
    client_ = message.param->reply_ep;
    return UCS_OK;
  }

  void SetUp() {
    worker_.Fail(slots_.Create(this, setup_->slots, setup_->payload_bytes));
    bytes_ = setup_->payload_bytes;
    setup_.reset();
    one_way_messages_ = one_way_bytes_ = 0;
    worker_.Send(client_, kReady, &ready_, nullptr, 0, &ready_pending_);
  }

  ucs_status_t OnMessage(const Message& message) {
    ServerSlot* const slot = slots_.Find(message.header.slot);
    if (slot == nullptr || message.bytes != bytes_ ||
        message.header.bytes != bytes_) {
      worker_.Fail(absl::DataLossError(absl::StrCat(
          "a message of ", message.bytes, " bytes came, not of ", bytes_)));
      return UCS_OK;
    }
    slot->id = message.id;
    slot->header.bytes = static_cast<uint32_t>(message.bytes);
    if (message.is_rendezvous()) {
      if (worker_.Fetch(message.data, slot->buffer, message.bytes,
                        ServerSlot::OnFetched, slot)) {
        OnData(*slot);
      }
      return UCS_INPROGRESS;
    }
    return OnEager(*slot, message);
  }

  ucs_status_t OnEager(ServerSlot& slot, const Message& message) {
    // An echo can be sent out of UCX's buffer, if that can be kept should the
    // FIFO back be full. Else the data are few bytes.
    const bool is_echo = message.id == kEcho;
    if (is_echo ? message.can_be_held() : FLAGS_leave_data) {
      Respond(slot, static_cast<const char*>(message.data));
      if (!is_echo || slot.pending.sends == 0) return UCS_OK;
      slot.pending.held = message.data;
      return UCS_INPROGRESS;
    }
    std::memcpy(slot.buffer, message.data, message.bytes);
    Respond(slot, slot.buffer);
    return UCS_OK;
  }

  void Respond(ServerSlot& slot, const char* data) {
    switch (slot.id) {
      case kEcho:
        return worker_.Send(client_, kAnswer, &slot.header, data, bytes_,
                            &slot.pending);
      case kPutChecked:
        slot.checksum = Checksum(std::string_view(data, bytes_));
        return worker_.Send(client_, kReceipt, &slot.header, &slot.checksum,
                            sizeof(slot.checksum), &slot.pending);
      case kOneWay:
        return CountOneWay(slot);
      default:
        return worker_.Send(client_, kReceipt, &slot.header, nullptr, 0,
                            &slot.pending);
    }
  }

  void CountOneWay(ServerSlot& slot) {
    one_way_bytes_ += bytes_;
    if (++one_way_messages_ % kGroup != 0) return;
    Header& header = receipts_[one_way_messages_ / kGroup % kGroups];
    header = {static_cast<uint32_t>(one_way_messages_ / kGroup - 1),
              static_cast<uint32_t>(one_way_bytes_)};
    one_way_bytes_ = 0;
    worker_.Send(client_, kGroupReceipt, &header, nullptr, 0, &slot.pending);
  }

  std::optional<Setup> setup_;
  ucp_ep_h client_ = nullptr;  // UCX's own: nobody else closes it
  Slots<UcxServer> slots_;
  size_t bytes_ = 0;
  uint64_t one_way_messages_ = 0;
  uint64_t one_way_bytes_ = 0;
  Header receipts_[kGroups] = {};
  Header ready_ = {};
  Pending ready_pending_;
  Worker worker_;  // the first to go: what it calls is still there
};

class UcxClient {
 public:
  using ClientSlot = Slot<UcxClient>;

  absl::Status Connect(const std::string& address) {
    absl::Status status = worker_.Open();
    if (!status.ok()) return status;
    status.Update(worker_.Handle<&UcxClient::OnReady>(kReady, this));
    status.Update(worker_.Handle<&UcxClient::OnAnswer>(kAnswer, this));
    status.Update(worker_.Handle<&UcxClient::OnReceipt>(kReceipt, this));
    status.Update(
        worker_.Handle<&UcxClient::OnGroupReceipt>(kGroupReceipt, this));
    if (!status.ok()) return status;
    return worker_.Connect(address);
  }

  absl::Status Prepare(const PeerWorkload& workload);
  absl::Status RunCalls(Recorder& recorder);
  absl::Status RunOneWay(Recorder& recorder);

  Worker& worker() { return worker_; }
  void OnData(ClientSlot& slot) { OnEcho(slot, slot.buffer); }

 private:
  struct Call {
    uint64_t number = 0;
    uint64_t start_ns = 0;
  };

  // Lets UCX work until `condition`, or until something went wrong.
  template <typename Condition>
  absl::Status SpinUntil(Condition condition) {
    while (!condition()) {
      if (!worker_.status().ok()) return worker_.status();
      if (!worker_.Progress() && watch_.IsGone()) {
        return absl::UnavailableError("the server is gone");
      }
    }
    return absl::OkStatus();
  }

  void Start(ClientSlot& slot, uint64_t now_ns) {
    Call& call = calls_[slot.header.slot];
    call = {next_number_++, now_ns};
    MessageId id = kEcho;
    if (is_bandwidth_) {
      id = RawPayloads::IsSampled(call.number) ? kPutChecked : kPut;
    }
    worker_.Send(worker_.endpoint(), id, &slot.header,
                 payloads_->data(call.number), bytes_, &slot.pending);
  }

  // Starts what is over anew, except where UCX still uses the last message.
  void StartOver();

  ucs_status_t OnReady(const Message&) {
    is_ready_ = true;
    return UCS_OK;
  }
  ucs_status_t OnAnswer(const Message& message);
  ucs_status_t OnReceipt(const Message& message);
  ucs_status_t OnGroupReceipt(const Message& message);
  void OnEcho(ClientSlot& slot, const char* data);
  void Finish(ClientSlot& slot, const absl::Status& status, uint64_t end_ns);

  // The time of this call of ucp_worker_progress.
  uint64_t TurnNowNs() {
    if (turn_ns_ == 0) turn_ns_ = SteadyNowNs();
    return turn_ns_;
  }

  size_t bytes_ = 0;
  bool is_bandwidth_ = false;
  bool is_ready_ = false;
  Memory memory_;
  std::optional<RawPayloads> payloads_;
  Slots<UcxClient> slots_;
  std::vector<Call> calls_;
  std::vector<ClientSlot*> over_;
  uint64_t next_number_ = 0;
  uint64_t turn_ns_ = 0;
  uint32_t groups_sent_ = 0;
  uint32_t groups_done_ = 0;
  uint64_t group_starts_ns_[kGroups] = {};
  Recorder* recorder_ = nullptr;
  bool more_ = false;
  size_t in_flight_ = 0;
  ChildWatch watch_;
  Worker worker_;  // the first to go: what it calls is still there
};

absl::Status UcxClient::Prepare(const PeerWorkload& workload) {
  bytes_ = workload.payload_bytes;
  is_bandwidth_ = workload.mode == Mode::kBandwidth;
  const size_t slots =
      FLAGS_one_way ? kGroup * kGroups : size_t(workload.concurrency);
  memory_ = Memory();  // before there is more of it
  payloads_.reset();
  absl::StatusOr<Memory> memory =
      Memory::Allocate(RawPayloads::MemoryBytes(workload));
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  payloads_.emplace(workload, memory_.data());
  if (absl::Status status = slots_.Create(this, slots, bytes_); !status.ok()) {
    return status;
  }
  calls_.assign(slots, {});
  groups_sent_ = groups_done_ = 0;
  next_number_ = 0;
  is_ready_ = false;
  const Setup setup = {bytes_, slots};
  const Header header = {};
  Pending pending;
  worker_.Send(worker_.endpoint(), kSetup, &header, &setup, sizeof(setup),
               &pending, UCP_AM_SEND_FLAG_REPLY);
  return SpinUntil([&] { return is_ready_ && pending.sends == 0; });
}

absl::Status UcxClient::RunCalls(Recorder& recorder) {
  recorder_ = &recorder;
  more_ = true;
  over_.clear();
  for (ClientSlot& slot : slots_.all()) over_.push_back(&slot);
  in_flight_ = over_.size();
  while (in_flight_ != 0) {
    if (!over_.empty()) StartOver();
    turn_ns_ = 0;
    if (!worker_.Progress() && watch_.IsGone()) {
      return absl::UnavailableError("the server is gone");
    }
    if (!worker_.status().ok()) return worker_.status();
  }
  // Messages of its own by which UCX ends a rendezvous may not be sent yet.
  const ucs_status_ptr_t flush = worker_.Flush();
  const absl::Status status =
      SpinUntil([&] { return Worker::IsFlushed(flush); });
  if (!status.ok()) return status;
  return SpinUntil([&] { return slots_.IsIdle(); });
}

void UcxClient::StartOver() {
  const uint64_t now_ns = SteadyNowNs();
  size_t kept = 0;
  for (ClientSlot* const slot : over_) {
    if (!more_) {
      --in_flight_;
    } else if (slot->pending.sends == 0) {
      Start(*slot, now_ns);
    } else {
      over_[kept++] = slot;
    }
  }
  over_.resize(kept);
}

ucs_status_t UcxClient::OnAnswer(const Message& message) {
  ClientSlot* const slot = slots_.Find(message.header.slot);
  if (slot == nullptr || message.bytes != bytes_) {
    worker_.Fail(absl::DataLossError(absl::StrCat(
        "an answer of ", message.bytes, " bytes came, not of ", bytes_)));
    return UCS_OK;
  }
  if (message.is_rendezvous()) {
    if (worker_.Fetch(message.data, slot->buffer, bytes_, ClientSlot::OnFetched,
                      slot)) {
      OnData(*slot);
    }
    return UCS_INPROGRESS;
  }
  if (FLAGS_leave_data) {
    OnEcho(*slot, static_cast<const char*>(message.data));
    return UCS_OK;
  }
  std::memcpy(slot->buffer, message.data, bytes_);
  OnEcho(*slot, slot->buffer);
  return UCS_OK;
}

void UcxClient::OnEcho(ClientSlot& slot, const char* data) {
  const uint64_t end_ns = TurnNowNs();
  Finish(slot,
         payloads_->CheckEcho(calls_[slot.header.slot].number, data, bytes_),
         end_ns);
}

ucs_status_t UcxClient::OnReceipt(const Message& message) {
  const uint64_t end_ns = TurnNowNs();
  ClientSlot* const slot = slots_.Find(message.header.slot);
  if (slot == nullptr) {
    worker_.Fail(absl::DataLossError("a receipt of no call"));
    return UCS_OK;
  }
  uint64_t checksum = 0;
  if (message.bytes == sizeof(checksum)) {
    std::memcpy(&checksum, message.data, sizeof(checksum));
  }
  Finish(*slot,
         payloads_->CheckReceipt(calls_[message.header.slot].number,
                                 message.header.bytes, checksum),
         end_ns);
  return UCS_OK;
}

void UcxClient::Finish(ClientSlot& slot, const absl::Status& status,
                       uint64_t end_ns) {
  more_ &= recorder_->Note(calls_[slot.header.slot].start_ns, end_ns, status);
  over_.push_back(&slot);
}

// Sends group after group; waits where as many are on their way as may be. What
// finds the FIFO full, UCX queues and sends when there is room.
absl::Status UcxClient::RunOneWay(Recorder& recorder) {
  recorder_ = &recorder;
  more_ = true;
  while (more_) {
    const absl::Status status = SpinUntil(
        [&] { return groups_sent_ - groups_done_ < kGroups || !more_; });
    if (!status.ok()) return status;
    const uint32_t group = groups_sent_++ % kGroups;
    group_starts_ns_[group] = SteadyNowNs();
    for (uint32_t i = 0; i < kGroup; ++i) {
      ClientSlot& slot = slots_.all()[group * kGroup + i];
      if (slot.pending.sends != 0) {
        const absl::Status sent =
            SpinUntil([&] { return slot.pending.sends == 0; });
        if (!sent.ok()) return sent;
      }
      worker_.Send(worker_.endpoint(), kOneWay, &slot.header,
                   payloads_->data(next_number_++), bytes_, &slot.pending);
    }
    turn_ns_ = 0;
    worker_.Progress();
  }
  return SpinUntil([&] { return groups_done_ == groups_sent_; });
}

ucs_status_t UcxClient::OnGroupReceipt(const Message& message) {
  const uint64_t end_ns = SteadyNowNs();
  if (message.header.slot != groups_done_ ||
      message.header.bytes != kGroup * bytes_) {
    worker_.Fail(absl::DataLossError("a group did not arrive as it was sent"));
    return UCS_OK;
  }
  const uint64_t start_ns = group_starts_ns_[groups_done_++ % kGroups];
  for (uint32_t i = 0; i < kGroup; ++i) {
    more_ &= recorder_->Note(start_ns, end_ns, absl::OkStatus());
  }
  return UCS_OK;
}

class UcxPeer final : public Peer {
 public:
  std::string name() const override {
    return FLAGS_one_way ? "ucx one way" : "ucx";
  }

  absl::Status Serve(const std::function<void(const std::string&)>& ready,
                     int stop_fd) override {
    UcxServer server;
    const absl::StatusOr<std::string> address = server.Open();
    if (!address.ok()) return address.status();
    ready(*address);
    return server.Run(stop_fd);
  }

  absl::Status Connect(const std::string& address) override {
    return client_.Connect(address);
  }

  absl::Status Prepare(const PeerWorkload& workload) override {
    if (absl::Status status = CheckWorkload(workload); !status.ok()) {
      return status;
    }
    return client_.Prepare(workload);
  }

  absl::Status Run(const PeerWorkload&, Recorder& recorder) override {
    return FLAGS_one_way ? client_.RunOneWay(recorder)
                         : client_.RunCalls(recorder);
  }

 private:
  static absl::Status CheckWorkload(const PeerWorkload& workload) {
    if (workload.concurrency < 1 || workload.payload_bytes > UINT32_MAX) {
      return absl::InvalidArgumentError("no such workload");
    }
    if (FLAGS_one_way && (workload.mode != Mode::kRate ||
                          workload.payload_bytes > kMostOneWayBytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--one_way takes --mode=rate and payloads of up to ",
                       kMostOneWayBytes, " bytes"));
    }
    return absl::OkStatus();
  }

  UcxClient client_;
};

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  benchmarks::UcxPeer peer;
  return benchmarks::PeerMain(argc, argv, peer);
}
