#include "rdma_transport/provider/failing_provider.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rdma {
namespace {

absl::Status Failure(std::string_view call, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(call), ": ", strerror(error)));
}

// Counts the ids that the user has: those that it made and those that came to
// it by kConnectRequest. The others go with the manager.
class FailingConnectionManager final : public ConnectionManager {
 public:
  FailingConnectionManager(std::unique_ptr<ConnectionManager> inner,
                           FaultPlan* plan)
      : inner_(std::move(inner)), plan_(plan) {
    plan_->OnCreated("connection manager");
  }
  ~FailingConnectionManager() override {
    for (; ids_ > 0; --ids_) plan_->OnDestroyed("id");
    plan_->OnDestroyed("connection manager");
  }

  int fd() const override { return inner_->fd(); }
  bool tells_of_dead_peers() const override {
    return inner_->tells_of_dead_peers();
  }

  std::optional<CmEvent> GetEvent() override {
    std::optional<CmEvent> event = inner_->GetEvent();
    if (event && event->type == CmEvent::Type::kConnectRequest) AddId();
    return event;
  }

  absl::StatusOr<CmId*> Listen(const SocketAddress& address, int backlog,
                               void* context) override {
    if (const int error = plan_->OnCall("Listen")) {
      return Failure("Listen", error);
    }
    return Counted(inner_->Listen(address, backlog, context));
  }

  absl::StatusOr<CmId*> Connect(const SocketAddress& address, ibv_qp* qp,
                                const ConnectionParameters& parameters,
                                absl::Duration timeout,
                                void* context) override {
    if (const int error = plan_->OnCall("Connect")) {
      return Failure("Connect", error);
    }
    return Counted(inner_->Connect(address, qp, parameters, timeout, context));
  }

  absl::Status Accept(CmId* id, ibv_qp* qp,
                      const ConnectionParameters& parameters) override {
    if (const int error = plan_->OnCall("Accept")) {
      return Failure("Accept", error);
    }
    return inner_->Accept(id, qp, parameters);
  }

  absl::Status Reject(CmId* id, std::string_view reason) override {
    if (const int error = plan_->OnCall("Reject")) {
      return Failure("Reject", error);
    }
    return inner_->Reject(id, reason);
  }

  absl::StatusOr<std::unique_ptr<CmId>> Release(CmId* id) override {
    if (const int error = plan_->OnCall("Release")) {
      return Failure("Release", error);
    }
    absl::StatusOr<std::unique_ptr<CmId>> released = inner_->Release(id);
    if (released.ok()) RemoveId();
    return released;
  }

  absl::StatusOr<CmId*> Adopt(std::unique_ptr<CmId> id) override {
    if (const int error = plan_->OnCall("Adopt")) {
      return Failure("Adopt", error);
    }
    return Counted(inner_->Adopt(std::move(id)));
  }

  void Disconnect(CmId* id) override { inner_->Disconnect(id); }

  void Destroy(CmId* id) override {
    inner_->Destroy(id);
    RemoveId();
  }

 private:
  void AddId() {
    ++ids_;
    plan_->OnCreated("id");
  }
  void RemoveId() {
    --ids_;
    plan_->OnDestroyed("id");
  }
  absl::StatusOr<CmId*> Counted(absl::StatusOr<CmId*> id) {
    if (id.ok()) AddId();
    return id;
  }

  const std::unique_ptr<ConnectionManager> inner_;
  FaultPlan* const plan_;
  int ids_ = 0;
};

class FailingDevice final : public Device {
 public:
  FailingDevice(std::unique_ptr<Device> inner, FaultPlan* plan)
      : inner_(std::move(inner)), plan_(plan) {
    plan_->OnCreated("device");
  }
  ~FailingDevice() override { plan_->OnDestroyed("device"); }

  ibv_context* context() override { return inner_->context(); }
  std::string_view name() const override { return inner_->name(); }
  const ibv_device_attr& attributes() const override {
    return inner_->attributes();
  }
  uint32_t max_inline_data() const override {
    return inner_->max_inline_data();
  }
  uint32_t useful_inline_data() const override {
    return inner_->useful_inline_data();
  }

  unsigned int invalidation_flags() const override {
    return inner_->invalidation_flags();
  }
  bool cpus_read() const override { return inner_->cpus_read(); }
  unsigned int past_caches_flag() const override {
    return inner_->past_caches_flag();
  }
  uint32_t reserved_lkey() const override { return inner_->reserved_lkey(); }
  bool reads_jointly() const override { return inner_->reads_jointly(); }
  bool is_at_work(ibv_cq* cq) const override { return inner_->is_at_work(cq); }

  void* AllocateMemory(size_t bytes, MemoryUse use) override {
    return Create("AllocateMemory", "memory",
                  [&] { return inner_->AllocateMemory(bytes, use); });
  }
  void FreeMemory(void* memory, size_t bytes) override {
    inner_->FreeMemory(memory, bytes);
    plan_->OnDestroyed("memory");
  }

  ibv_pd* AllocPd() override {
    return Create("AllocPd", "PD", [&] { return inner_->AllocPd(); });
  }
  int DeallocPd(ibv_pd* pd) override {
    return Destroyed("PD", inner_->DeallocPd(pd));
  }

  ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access) override {
    return Create("RegMr", "MR",
                  [&] { return inner_->RegMr(pd, addr, length, access); });
  }
  int DeregMr(ibv_mr* mr) override {
    return Destroyed("MR", inner_->DeregMr(mr));
  }

  ibv_comp_channel* CreateCompChannel() override {
    return Create("CreateCompChannel", "completion channel",
                  [&] { return inner_->CreateCompChannel(); });
  }
  int DestroyCompChannel(ibv_comp_channel* channel) override {
    return Destroyed("completion channel", inner_->DestroyCompChannel(channel));
  }
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override {
    return inner_->GetCqEvent(channel, cq, cq_context);
  }
  void AckCqEvents(ibv_cq* cq, unsigned int count) override {
    inner_->AckCqEvents(cq, count);
  }

  ibv_cq* CreateCq(int cqe, void* cq_context, ibv_comp_channel* channel,
                   int comp_vector) override {
    return Create("CreateCq", "CQ", [&] {
      return inner_->CreateCq(cqe, cq_context, channel, comp_vector);
    });
  }
  int ResizeCq(ibv_cq* cq, int cqe) override {
    if (const int error = plan_->OnCall("ResizeCq")) return error;
    return inner_->ResizeCq(cq, cqe);
  }
  int DestroyCq(ibv_cq* cq) override {
    return Destroyed("CQ", inner_->DestroyCq(cq));
  }

  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) override {
    return Create("CreateSrq", "SRQ",
                  [&] { return inner_->CreateSrq(pd, init); });
  }
  int ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int mask) override {
    if (const int error = plan_->OnCall("ModifySrq")) return error;
    return inner_->ModifySrq(srq, attr, mask);
  }
  int QuerySrq(ibv_srq* srq, ibv_srq_attr* attr) override {
    if (const int error = plan_->OnCall("QuerySrq")) return error;
    return inner_->QuerySrq(srq, attr);
  }
  int DestroySrq(ibv_srq* srq) override {
    return Destroyed("SRQ", inner_->DestroySrq(srq));
  }

  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) override {
    return Create("CreateQp", "QP", [&] { return inner_->CreateQp(pd, init); });
  }
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override {
    if (const int error = plan_->OnCall("ModifyQp")) return error;
    return inner_->ModifyQp(qp, attr, mask);
  }
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init) override {
    if (const int error = plan_->OnCall("QueryQp")) return error;
    return inner_->QueryQp(qp, attr, mask, init);
  }
  int DestroyQp(ibv_qp* qp) override {
    return Destroyed("QP", inner_->DestroyQp(qp));
  }

  int GetAsyncEvent(ibv_async_event* event) override {
    return inner_->GetAsyncEvent(event);
  }
  void AckAsyncEvent(ibv_async_event* event) override {
    inner_->AckAsyncEvent(event);
  }

  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager()
      override {
    if (const int error = plan_->OnCall("CreateConnectionManager")) {
      return Failure("CreateConnectionManager", error);
    }
    absl::StatusOr<std::unique_ptr<ConnectionManager>> manager =
        inner_->CreateConnectionManager();
    if (!manager.ok()) return manager.status();
    return std::make_unique<FailingConnectionManager>(*std::move(manager),
                                                      plan_);
  }

 private:
  // A call that returns an object, or null and errno.
  template <typename Call>
  auto Create(std::string_view call, std::string_view kind, Call make)
      -> decltype(make()) {
    if (const int error = plan_->OnCall(call)) {
      errno = error;
      return nullptr;
    }
    auto* const object = make();
    if (object != nullptr) plan_->OnCreated(kind);
    return object;
  }

  int Destroyed(std::string_view kind, int error) {
    if (error == 0) plan_->OnDestroyed(kind);
    return error;
  }

  const std::unique_ptr<Device> inner_;
  FaultPlan* const plan_;
};

class FailingProvider final : public Provider {
 public:
  FailingProvider(std::unique_ptr<Provider> inner, FaultPlan* plan)
      : inner_(std::move(inner)), plan_(plan) {}

  std::string_view name() const override { return inner_->name(); }
  std::vector<std::string> ListDevices() override {
    return inner_->ListDevices();
  }

  absl::StatusOr<std::unique_ptr<Device>> Open(
      std::string_view device_name, const DeviceOptions& options) override {
    if (const int error = plan_->OnCall("Open")) return Failure("Open", error);
    absl::StatusOr<std::unique_ptr<Device>> device =
        inner_->Open(device_name, options);
    if (!device.ok()) return device.status();
    return MakeFailingDevice(*std::move(device), plan_);
  }

  absl::StatusOr<std::string> DeviceFor(const SocketAddress& address,
                                        AddressUse use,
                                        absl::Duration timeout) override {
    if (const int error = plan_->OnCall("DeviceFor")) {
      return Failure("DeviceFor", error);
    }
    return inner_->DeviceFor(address, use, timeout);
  }

 private:
  const std::unique_ptr<Provider> inner_;
  FaultPlan* const plan_;
};

}  // namespace

std::unique_ptr<Provider> MakeFailingProvider(std::unique_ptr<Provider> inner,
                                              FaultPlan* plan) {
  return std::make_unique<FailingProvider>(std::move(inner), plan);
}

std::unique_ptr<Device> MakeFailingDevice(std::unique_ptr<Device> inner,
                                          FaultPlan* plan) {
  return std::make_unique<FailingDevice>(std::move(inner), plan);
}

}  // namespace rdma
