#include "tests/transport/device_program.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rdma_transport/verbs/queues.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);

// The objects of one end; the destructor takes them in reverse, the QP before
// the manager and so before its id.
struct End {
  std::unique_ptr<ProtectionDomain> pd;
  std::unique_ptr<MemoryRegion> memory;
  std::unique_ptr<CompletionChannel> channel;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<SharedReceiveQueue> srq;
  std::unique_ptr<ConnectionManager> manager;
  std::unique_ptr<ConnectionManager> second_manager;
  std::unique_ptr<QueuePair> qp;
  CmId* id = nullptr;
  bool up = false;
};

template <typename T>
absl::Status Take(absl::StatusOr<T> made, T* object) {
  if (made.ok()) *object = *std::move(made);
  return made.status();
}

absl::Status MakeEnd(Device* device, End* end) {
  absl::Status status = Take(ProtectionDomain::Create(device), &end->pd);
  if (!status.ok()) return status;
  status =
      Take(MemoryRegion::Create(end->pd.get(), 4096, IBV_ACCESS_LOCAL_WRITE),
           &end->memory);
  if (!status.ok()) return status;
  status = Take(CompletionChannel::Create(device), &end->channel);
  if (!status.ok()) return status;
  status =
      Take(CompletionQueue::Create(end->channel.get(), device, 16), &end->cq);
  if (!status.ok()) return status;
  status = Take(SharedReceiveQueue::Create(end->pd.get(), 16, 1), &end->srq);
  if (!status.ok()) return status;
  ibv_srq_attr limit = {};
  limit.srq_limit = 4;
  if (const int error =
          device->ModifySrq(end->srq->get(), &limit, IBV_SRQ_LIMIT)) {
    return VerbsError("ibv_modify_srq", error);
  }
  status = Take(device->CreateConnectionManager(), &end->manager);
  if (!status.ok()) return status;
  status = Take(device->CreateConnectionManager(), &end->second_manager);
  if (!status.ok()) return status;
  return Take(QueuePair::Create(end->pd.get(), end->cq.get(), end->srq.get(),
                                {16, 1, 0}),
              &end->qp);
}

// By the manager that did not hear of the request.
absl::Status Accept(CmId* id, End* end) {
  std::unique_ptr<CmId> released;
  absl::Status status = Take(end->manager->Release(id), &released);
  if (!status.ok()) return status;
  status = Take(end->second_manager->Adopt(std::move(released)), &end->id);
  if (!status.ok()) return status;
  return end->second_manager->Accept(end->id, end->qp->get(), {});
}

absl::Status OnEvent(const CmEvent& event, End* end) {
  switch (event.type) {
    case CmEvent::Type::kConnectRequest:
      return Accept(event.id, end);
    case CmEvent::Type::kEstablished:
      end->up = true;
      return absl::OkStatus();
    case CmEvent::Type::kConnectFailed:
    case CmEvent::Type::kListenFailed:
      return event.status;
    case CmEvent::Type::kDisconnected:
      return absl::UnavailableError("disconnected");
  }
  return absl::InternalError("an event of no type");
}

// Serves both ends until both are up, or one has failed.
absl::Status AwaitUp(End* client, End* server) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!client->up || !server->up) {
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError("not connected in time");
    }
    for (End* const end : {client, server}) {
      for (ConnectionManager* const manager :
           {end->manager.get(), end->second_manager.get()}) {
        while (std::optional<CmEvent> event = manager->GetEvent()) {
          if (absl::Status status = OnEvent(*event, end); !status.ok()) {
            return status;
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

// A connection that the server does not want. A QP of its own, which goes
// before the id.
absl::Status BeRejected(CmId* listener, End* client, End* server) {
  std::unique_ptr<QueuePair> qp;
  absl::Status status =
      Take(QueuePair::Create(client->pd.get(), client->cq.get(),
                             client->srq.get(), {16, 1, 0}),
           &qp);
  if (!status.ok()) return status;
  CmId* id = nullptr;
  status = Take(client->manager->Connect(listener->local_address(), qp->get(),
                                         {}, kConnectTimeout, nullptr),
                &id);
  if (!status.ok()) return status;
  const absl::Time deadline = absl::Now() + kPatience;
  std::optional<CmEvent> answer;
  while (!answer.has_value() && status.ok() && absl::Now() < deadline) {
    if (std::optional<CmEvent> request = server->manager->GetEvent()) {
      status = server->manager->Reject(request->id, "not now");
      server->manager->Destroy(request->id);
    }
    answer = client->manager->GetEvent();
  }
  qp.reset();
  client->manager->Destroy(id);
  if (!status.ok()) return status;
  if (!answer.has_value()) return absl::DeadlineExceededError("no rejection");
  return answer->rejected ? absl::OkStatus() : answer->status;
}

absl::Status ConnectAndPart(const SocketAddress& address, End* client,
                            End* server) {
  CmId* listener = nullptr;
  absl::Status status =
      Take(server->manager->Listen(address, 4, nullptr), &listener);
  if (!status.ok()) return status;
  status = BeRejected(listener, client, server);
  if (!status.ok()) return status;
  status = Take(
      client->manager->Connect(listener->local_address(), client->qp->get(), {},
                               kConnectTimeout, nullptr),
      &client->id);
  if (!status.ok()) return status;
  status = AwaitUp(client, server);
  if (!status.ok()) return status;
  client->manager->Disconnect(client->id);
  // The server's id, and the listener, are left to their managers.
  client->qp.reset();
  client->manager->Destroy(client->id);
  return server->qp->MoveToError();
}

}  // namespace

absl::Status RunDeviceProgram(Provider* provider,
                              const SocketAddress& address) {
  std::string name;
  absl::Status status = Take(
      provider->DeviceFor(address, AddressUse::kConnect, kPatience), &name);
  if (!status.ok()) return status;
  status =
      Take(provider->DeviceFor(address, AddressUse::kListen, kPatience), &name);
  if (!status.ok()) return status;
  std::unique_ptr<Device> device;
  status = Take(provider->Open(name, {}), &device);
  if (!status.ok()) return status;
  End client;
  End server;
  status = MakeEnd(device.get(), &client);
  if (status.ok()) status = MakeEnd(device.get(), &server);
  if (status.ok()) status = ConnectAndPart(address, &client, &server);
  return status;
}

}  // namespace rdma
