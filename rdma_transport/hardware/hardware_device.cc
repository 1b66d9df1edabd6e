#include "rdma_transport/hardware/hardware_device.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/arena_memory.h"
#include "rdma_transport/hardware/inline_limit.h"
#include "rdma_transport/hardware/rdma_cm_connection_manager.h"
#include "rdma_transport/hardware/tcp_connection_manager.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

bool MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

absl::Status OpenError(int error, std::string_view name) {
  // libibverbs looks for another name of a file that it may not open, and says
  // ENOENT when there is none.
  if (error == EACCES || error == EPERM || error == ENOENT) {
    return absl::PermissionDeniedError(absl::StrCat(
        "ibv_open_device: ", std::string(name),
        ": this user may not open /dev/infiniband/uverbs*, or it is not there; "
        "rdma-core's udev rules open them to everybody, a "
        "container needs them passed in"));
  }
  return VerbsError("ibv_open_device", error, name);
}

}  // namespace

// --- Opening and closing -----------------------------------------------------

absl::StatusOr<std::unique_ptr<HardwareDevice>> HardwareDevice::Open(
    ibv_device* device, const HardwareOptions& options) {
  errno = 0;
  ibv_context* const context = ibv_open_device(device);
  if (context == nullptr) {
    return OpenError(errno == 0 ? ENODEV : errno, ibv_get_device_name(device));
  }
  std::unique_ptr<HardwareDevice> opened =
      absl::WrapUnique(new HardwareDevice(context, options));
  if (absl::Status status = opened->Initialize(); !status.ok()) return status;
  return opened;
}

HardwareDevice::HardwareDevice(ibv_context* context,
                               const HardwareOptions& options)
    : context_(context),
      options_(options),
      name_(ibv_get_device_name(context->device)) {}

absl::Status HardwareDevice::Initialize() {
  if (const int error = ibv_query_device(context_, &attributes_); error != 0) {
    return VerbsError("ibv_query_device", error, name_);
  }
  if (!MakeNonBlocking(context_->async_fd)) {
    return VerbsError("fcntl", errno, absl::StrCat("async_fd of ", name_));
  }
  absl::StatusOr<uint32_t> inline_limit = FindInlineLimit(context_);
  if (!inline_limit.ok()) return inline_limit.status();
  max_inline_data_ = *inline_limit;
  return absl::OkStatus();
}

HardwareDevice::~HardwareDevice() {
  if (const int error = ibv_close_device(context_); error != 0) {
    rpc::Log(rpc::LogLevel::kError,
             VerbsError("ibv_close_device", error, name_).ToString());
  }
}

// rxe hands the kernel's IB_WC_WITH_INVALIDATE (4) through, which is another
// bit than libibverbs' and means something else there that RC QPs never have.
// Who overlooks it invalidates the window once more, and that is a null pointer
// in the kernel (Linux 6.1, rxe_do_invalidate_mw).
unsigned int HardwareDevice::invalidation_flags() const {
  return IsSoftRoce(attributes_) ? IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK
                                 : IBV_WC_WITH_INV;
}

// --- Memory ------------------------------------------------------------------

// On hardware, memory that peers write is no other than memory that they read.
void* HardwareDevice::AllocateMemory(size_t bytes, MemoryUse) {
  return AllocateArena(bytes);
}

void HardwareDevice::FreeMemory(void* memory, size_t bytes) {
  FreeArena(memory, bytes);
}

ibv_pd* HardwareDevice::AllocPd() { return ibv_alloc_pd(context_); }

int HardwareDevice::DeallocPd(ibv_pd* pd) { return ibv_dealloc_pd(pd); }

ibv_mr* HardwareDevice::RegMr(ibv_pd* pd, void* addr, size_t length,
                              int access) {
  return ibv_reg_mr(pd, addr, length, access);
}

int HardwareDevice::DeregMr(ibv_mr* mr) { return ibv_dereg_mr(mr); }

// --- Completions -------------------------------------------------------------

ibv_comp_channel* HardwareDevice::CreateCompChannel() {
  ibv_comp_channel* const channel = ibv_create_comp_channel(context_);
  if (channel == nullptr || MakeNonBlocking(channel->fd)) return channel;
  const int error = errno;
  ibv_destroy_comp_channel(channel);
  errno = error;
  return nullptr;
}

int HardwareDevice::DestroyCompChannel(ibv_comp_channel* channel) {
  return ibv_destroy_comp_channel(channel);
}

int HardwareDevice::GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                               void** cq_context) {
  return ibv_get_cq_event(channel, cq, cq_context);
}

void HardwareDevice::AckCqEvents(ibv_cq* cq, unsigned int count) {
  ibv_ack_cq_events(cq, count);
}

ibv_cq* HardwareDevice::CreateCq(int cqe, void* cq_context,
                                 ibv_comp_channel* channel, int comp_vector) {
  return ibv_create_cq(context_, cqe, cq_context, channel, comp_vector);
}

int HardwareDevice::ResizeCq(ibv_cq* cq, int cqe) {
  return ibv_resize_cq(cq, cqe);
}

int HardwareDevice::DestroyCq(ibv_cq* cq) { return ibv_destroy_cq(cq); }

// --- Queues ------------------------------------------------------------------

ibv_srq* HardwareDevice::CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) {
  return ibv_create_srq(pd, init);
}

int HardwareDevice::ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  return ibv_modify_srq(srq, attr, mask);
}

int HardwareDevice::QuerySrq(ibv_srq* srq, ibv_srq_attr* attr) {
  return ibv_query_srq(srq, attr);
}

int HardwareDevice::DestroySrq(ibv_srq* srq) { return ibv_destroy_srq(srq); }

ibv_qp* HardwareDevice::CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) {
  return ibv_create_qp(pd, init);
}

int HardwareDevice::ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return ibv_modify_qp(qp, attr, mask);
}

int HardwareDevice::QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
                            ibv_qp_init_attr* init) {
  return ibv_query_qp(qp, attr, mask, init);
}

int HardwareDevice::DestroyQp(ibv_qp* qp) { return ibv_destroy_qp(qp); }

// --- Events ------------------------------------------------------------------

int HardwareDevice::GetAsyncEvent(ibv_async_event* event) {
  return ibv_get_async_event(context_, event);
}

void HardwareDevice::AckAsyncEvent(ibv_async_event* event) {
  ibv_ack_async_event(event);
}

absl::StatusOr<std::unique_ptr<ConnectionManager>>
HardwareDevice::CreateConnectionManager() {
  switch (options_.connection_setup) {
    case ConnectionSetup::kRdmaCm:
      return RdmaCmConnectionManager::Create(this);
    case ConnectionSetup::kTcp:
      return TcpConnectionManager::Create(this, options_);
  }
  return absl::InvalidArgumentError("HardwareOptions: no such ConnectionSetup");
}

}  // namespace rdma
