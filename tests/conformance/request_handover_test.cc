// Connection requests that another manager answers than the one that heard of
// them: a server's pollers each have a manager, and one of them listens.
// rdma_migrate_id(3). Method: as connection_test.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/conformance/connection_fixture.h"

namespace rdma::conformance {
namespace {

class RequestHandoverTest : public ConnectionFixture {
 protected:
  void SetUp() override {
    ConnectionFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    absl::StatusOr<std::unique_ptr<ConnectionManager>> second =
        server().device().CreateConnectionManager();
    ASSERT_TRUE(second.ok()) << second.status();
    second_ = *std::move(second);
    pump().Watch(second_.get());
    listener_ = Listen();
    ASSERT_NE(listener_, nullptr);
    id_ = StartConnecting(listener_->local_address());
    ASSERT_NE(id_, nullptr);
    request_ = Expect(server(), Type::kConnectRequest);
    ASSERT_NE(request_.id, nullptr);
  }
  void TearDown() override {
    if (server_qp_ != nullptr) server().DestroyQp(server_qp_);
    if (second_ != nullptr) pump().Unwatch(second_.get());
    second_.reset();
    ConnectionFixture::TearDown();
  }

  std::unique_ptr<CmId> Release() {
    absl::StatusOr<std::unique_ptr<CmId>> released =
        server().manager().Release(request_.id);
    EXPECT_TRUE(released.ok()) << released.status();
    return released.ok() ? *std::move(released) : nullptr;
  }
  CmId* Adopt(std::unique_ptr<CmId> released) {
    absl::StatusOr<CmId*> id = second_->Adopt(std::move(released));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : nullptr;
  }
  absl::Status AcceptBySecond(CmId* id) {
    server_qp_ = server().CreateQp({});
    return second_->Accept(id, server_qp_, {});
  }
  CmEvent NextOfSecond() {
    return pump()
        .Await(second_.get())
        .value_or(CmEvent{.type = Type::kListenFailed});
  }
  void ExpectSendArrives(ibv_qp* from, Side& sender, ibv_qp* to,
                         Side& receiver) {
    ASSERT_EQ(0, PostReceive(to, {.wr_id = 1}));
    ASSERT_EQ(0, Post(from, SendWr(2).Imm(htonl(7)).Inline()));
    EXPECT_THAT(Await(sender.send_cq()), Succeeded(2));
    EXPECT_THAT(Await(receiver.recv_cq()), Received(1, 0));
  }

  std::unique_ptr<ConnectionManager> second_;
  CmId* listener_ = nullptr;
  CmId* id_ = nullptr;  // the client's
  CmEvent request_;
  ibv_qp* server_qp_ = nullptr;
};
CONFORMANCE_SUITE(RequestHandoverTest);

TEST_P(RequestHandoverTest, TheOtherManagerAcceptsAndHearsOfTheEnd) {
  int context = 0;
  request_.id->context = &context;
  CmId* const id = Adopt(Release());
  ASSERT_NE(id, nullptr);
  EXPECT_EQ(id->context, &context);
  EXPECT_EQ(id->local_address().port(), listener_->local_address().port());
  ASSERT_TRUE(AcceptBySecond(id).ok());
  EXPECT_EQ(Expect(client(), Type::kEstablished).id, id_);
  const CmEvent established = NextOfSecond();
  EXPECT_EQ(established.type, Type::kEstablished) << established.status;
  EXPECT_EQ(established.id, id);
  ExpectSendArrives(qp_, client(), server_qp_, server());
  ExpectSendArrives(server_qp_, server(), qp_, client());

  client().manager().Disconnect(id_);
  const CmEvent end = NextOfSecond();
  EXPECT_EQ(end.type, Type::kDisconnected) << end.status;
  EXPECT_EQ(end.id, id);
  pump().ExpectSilence(&server().manager());
  second_->Disconnect(id);
  server().DestroyQp(std::exchange(server_qp_, nullptr));
  second_->Destroy(id);
}

TEST_P(RequestHandoverTest, TheOtherManagerRejects) {
  CmId* const id = Adopt(Release());
  ASSERT_NE(id, nullptr);
  EXPECT_TRUE(second_->Reject(id, "not here either").ok());
  const CmEvent failed = Expect(client(), Type::kConnectFailed);
  EXPECT_TRUE(failed.rejected);
  ExpectPadded(failed.private_data, "not here either");
}

TEST_P(RequestHandoverTest, TheListenerMayGoMeanwhile) {
  std::unique_ptr<CmId> released = Release();
  ASSERT_NE(released, nullptr);
  server().manager().Destroy(listener_);
  CmId* const id = Adopt(std::move(released));
  ASSERT_NE(id, nullptr);
  ASSERT_TRUE(AcceptBySecond(id).ok());
  EXPECT_EQ(Expect(client(), Type::kEstablished).id, id_);
  EXPECT_EQ(NextOfSecond().type, Type::kEstablished);
  ExpectSendArrives(qp_, client(), server_qp_, server());
}

TEST_P(RequestHandoverTest, TheListenerGoesOnListening) {
  ASSERT_NE(Adopt(Release()), nullptr);
  CmId* const another = StartConnecting(listener_->local_address());
  ASSERT_NE(another, nullptr);
  const CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  EXPECT_TRUE(
      server().manager().Accept(request.id, server().CreateQp({}), {}).ok());
  EXPECT_EQ(Expect(client(), Type::kEstablished).id, another);
}

TEST_P(RequestHandoverTest, ARequestThatNobodyAdoptsIsDeclined) {
  std::unique_ptr<CmId> released = Release();
  ASSERT_NE(released, nullptr);
  released.reset();
  const CmEvent failed = Expect(client(), Type::kConnectFailed);
  EXPECT_EQ(failed.id, id_);
  EXPECT_FALSE(failed.status.ok());
}

TEST_P(RequestHandoverTest, TheClientMayGiveUpMeanwhile) {
  std::unique_ptr<CmId> released = Release();
  ASSERT_NE(released, nullptr);
  client().DestroyQp(qp_);
  client().manager().Destroy(id_);
  CmId* const id = Adopt(std::move(released));
  ASSERT_NE(id, nullptr);
  // Whether the server knows already is for the device to say; it must hear.
  if (!AcceptBySecond(id).ok()) return;
  CmEvent event;
  do {
    event = NextOfSecond();
  } while (event.type == Type::kEstablished);
  EXPECT_TRUE(event.type == Type::kDisconnected ||
              event.type == Type::kConnectFailed)
      << event.status;
}

TEST_P(RequestHandoverTest, WhatHasAnAnswerStays) {
  server_qp_ = server().CreateQp({});
  ASSERT_TRUE(server().manager().Accept(request_.id, server_qp_, {}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      server().manager().Release(request_.id).status()));
  EXPECT_EQ(Expect(client(), Type::kEstablished).id, id_);
  EXPECT_EQ(Expect(server(), Type::kEstablished).id, request_.id);
  ExpectSendArrives(qp_, client(), server_qp_, server());
}

}  // namespace
}  // namespace rdma::conformance
