// Goal: the Nth call fails and no other, what is alive is counted right, and
// the owning types of rdma_transport/verbs/ leak nothing whichever call fails.
// Method: one program over the software device that makes every kind of object
// and a connection, run with N = 0, 1, 2, ... until a run is clean.
#include "rdma_transport/provider/failing_provider.h"

#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/software/software_provider.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rdma_transport/verbs/queues.h"

namespace rdma {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

// The objects of one end, made one by one; the destructor takes them in
// reverse.
struct End {
  std::unique_ptr<ProtectionDomain> pd;
  std::unique_ptr<MemoryRegion> memory;
  std::unique_ptr<CompletionChannel> channel;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<SharedReceiveQueue> srq;
  std::unique_ptr<ConnectionManager> manager;
  std::unique_ptr<QueuePair> qp;
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
  status = end->srq->ArmLimit(4);
  if (!status.ok()) return status;
  status = Take(device->CreateConnectionManager(), &end->manager);
  if (!status.ok()) return status;
  return Take(QueuePair::Create(end->pd.get(), end->cq.get(), end->srq.get(),
                                {16, 1, 0}),
              &end->qp);
}

// Both ends are asked in turn; the event is of `manager`.
std::optional<CmEvent> Await(ConnectionManager* manager,
                             ConnectionManager* other) {
  const absl::Time end = absl::Now() + kPatience;
  while (absl::Now() < end) {
    if (std::optional<CmEvent> event = manager->GetEvent()) return event;
    other->GetEvent();
  }
  return std::nullopt;
}

absl::Status ConnectEnds(End* client, End* server) {
  absl::StatusOr<CmId*> listener = server->manager->Listen(
      *SocketAddress::FromNumeric("127.0.0.1", 0), 4, nullptr);
  if (!listener.ok()) return listener.status();
  absl::StatusOr<CmId*> id = client->manager->Connect(
      (*listener)->local_address(), client->qp->get(), {}, kPatience, nullptr);
  if (!id.ok()) return id.status();
  const std::optional<CmEvent> request =
      Await(server->manager.get(), client->manager.get());
  if (!request) return absl::InternalError("no request came");
  absl::Status status =
      server->manager->Accept(request->id, server->qp->get(), {});
  if (status.ok()) {
    const std::optional<CmEvent> established =
        Await(client->manager.get(), server->manager.get());
    if (!established || established->type != CmEvent::Type::kEstablished) {
      return absl::InternalError("not established");
    }
    status = client->qp->MoveToError();
  }
  // One id is left to the manager, on purpose.
  client->qp.reset();
  client->manager->Destroy(*id);
  server->qp.reset();
  server->manager->Destroy(request->id);
  return status;
}

absl::Status RunProgram(Provider* provider) {
  absl::StatusOr<std::string> name =
      provider->DeviceFor(*SocketAddress::FromNumeric("127.0.0.1", 1),
                          AddressUse::kConnect, kPatience);
  if (!name.ok()) return name.status();
  absl::StatusOr<std::unique_ptr<Device>> device = provider->Open(*name, {});
  if (!device.ok()) return device.status();
  End client;
  End server;
  absl::Status status = MakeEnd(device->get(), &client);
  if (status.ok()) status = MakeEnd(device->get(), &server);
  if (status.ok()) status = ConnectEnds(&client, &server);
  return status;
}

TEST(FailingProviderTest, WhicheverCallFailsNothingLeaks) {
  std::set<std::string> failed_calls;
  for (int n = 0; n < 100; ++n) {
    FaultPlan plan;
    plan.FailCall(n, ENOMEM);
    const absl::Status status =
        RunProgram(MakeFailingProvider(MakeSoftwareProvider(), &plan).get());
    EXPECT_EQ(plan.Leaks(), "") << "call " << n << ", " << plan.failed_call();
    EXPECT_EQ(status.ok(), !plan.failed()) << status;
    if (!plan.failed()) {
      EXPECT_EQ(plan.calls(), n);
      break;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    failed_calls.insert(plan.failed_call());
  }
  EXPECT_THAT(
      failed_calls,
      testing::ElementsAre("Accept", "AllocPd", "AllocateMemory", "Connect",
                           "CreateCompChannel", "CreateConnectionManager",
                           "CreateCq", "CreateQp", "CreateSrq", "DeviceFor",
                           "Listen", "ModifyQp", "ModifySrq", "Open", "RegMr"));
}

TEST(FailingProviderTest, FailsOnceAndWithThatErrno) {
  FaultPlan plan;
  const std::unique_ptr<Device> device =
      *MakeFailingProvider(MakeSoftwareProvider(), &plan)->Open("soft0", {});
  plan.FailCall(plan.calls() + 1, EPERM);
  ibv_pd* const first = device->AllocPd();
  ASSERT_NE(first, nullptr);
  errno = 0;
  EXPECT_EQ(device->AllocPd(), nullptr);
  EXPECT_EQ(errno, EPERM);
  ibv_pd* const second = device->AllocPd();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(plan.Leaks(), "2 PD, 1 device");
  EXPECT_EQ(device->DeallocPd(first), 0);
  EXPECT_EQ(device->DeallocPd(second), 0);
  EXPECT_EQ(plan.Leaks(), "1 device");
}

// A leak must be seen, or the test above could not fail.
TEST(FailingProviderTest, SeesWhatIsLeft) {
  FaultPlan plan;
  std::unique_ptr<Device> device =
      *MakeFailingProvider(MakeSoftwareProvider(), &plan)->Open("soft0", {});
  void* const memory = device->AllocateMemory(4096, MemoryUse::kLocal);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(plan.Leaks(), "1 device, 1 memory");
  device->FreeMemory(memory, 4096);
  device.reset();
  EXPECT_EQ(plan.Leaks(), "");
}

}  // namespace
}  // namespace rdma
