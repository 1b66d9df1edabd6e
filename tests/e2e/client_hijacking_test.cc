// Goal: an interceptor can answer a client's call itself, for each kind of call
// and each of the client's APIs, and can make calls of its own meanwhile.
// Method: calls of all kinds by all APIs on channels whose interceptors hijack
// them; a server that counts the calls that reach it.
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/calls_by_api.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interceptors.h"
#include "tests/e2e/parcels.h"

namespace e2e {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Answers a call with two responses where the server streams, else with one,
// and with metadata and a status.
class Hijacker {
 public:
  explicit Hijacker(RpcType type)
      : left_(ServerStreams(type) ? 2 : 1), streams_(ServerStreams(type)) {}

  void Answer(Batch* batch) {
    if (batch->QueryInterceptionHookPoint(Hook::PRE_RECV_INITIAL_METADATA)) {
      batch->GetRecvInitialMetadata()->emplace("initial", "hijacked");
    }
    if (batch->QueryInterceptionHookPoint(Hook::PRE_RECV_MESSAGE)) {
      if (left_-- > 0) {
        static_cast<Parcel*>(batch->GetRecvMessage())->set_code(42);
      } else if (streams_) {
        batch->FailHijackedRecvMessage();
      }
    }
    if (batch->QueryInterceptionHookPoint(Hook::PRE_RECV_STATUS)) {
      batch->GetRecvTrailingMetadata()->emplace("trailing", "hijacked");
      *batch->GetRecvStatus() = status;
    }
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_INITIAL_METADATA)) {
      return batch->Hijack();
    }
    batch->Proceed();
  }
  Act AsAct() {
    return [this](Batch* batch) { Answer(batch); };
  }

  rpc::Status status;

 private:
  int left_;
  const bool streams_;
};

class HijackingTest : public testing::Test {
 protected:
  HijackingTest() : server_({}, ServerUri(), &service_) {
    EXPECT_TRUE(server_.ok()) << server_.status();
  }

  ParcelService service_;
  Server server_;
};

class EachHijackedCallTest
    : public HijackingTest,
      public testing::WithParamInterface<std::tuple<ClientApi, RpcType>> {
 protected:
  ClientApi api() const { return std::get<0>(GetParam()); }
  RpcType type() const { return std::get<1>(GetParam()); }
  // What a generic stub does is a stream, unless it is unary.
  RpcType type_of_call() const {
    const bool is_stream = type() != RpcType::NORMAL_RPC;
    return api() == ClientApi::kGeneric && is_stream ? RpcType::BIDI_STREAMING
                                                     : type();
  }
  int responses() const { return ServerStreams(type_of_call()) ? 2 : 1; }
  Exchanged<Parcel> CallOn(const std::shared_ptr<rpc::Channel>& channel) {
    return Call(api(), type(), channel, &context_);
  }
  void ExpectHijacked(const Exchanged<Parcel>& result) {
    EXPECT_OK(result.status);
    EXPECT_EQ(result.responses.size(), responses());
    for (const Parcel& response : result.responses) {
      EXPECT_EQ(response.code(), 42);
    }
    EXPECT_EQ(context_.GetServerInitialMetadata().count("initial"), 1);
    EXPECT_EQ(context_.GetServerTrailingMetadata().count("trailing"), 1);
    EXPECT_EQ(service_.begun, 0);
  }

  TimedContext context_;
};

TEST_P(EachHijackedCallTest, IsAnsweredByItsInterceptor) {
  Hijacker hijacker(type_of_call());
  HookLog before;
  HookLog after;
  const auto channel = InterceptedChannel(
      server_.address(), {Noting(&before), hijacker.AsAct(), Noting(&after)});
  ExpectHijacked(CallOn(channel));
  EXPECT_THAT(after.All(), IsEmpty());
  EXPECT_EQ(before.CountOf(Hook::PRE_SEND_INITIAL_METADATA), 1);
  EXPECT_EQ(before.CountOf(Hook::POST_RECV_INITIAL_METADATA), 1);
  EXPECT_EQ(before.CountOf(Hook::POST_RECV_STATUS), 1);
  EXPECT_EQ(before.CountOf(Hook::PRE_RECV_STATUS), 0);
  EXPECT_EQ(before.CountOf(Hook::PRE_RECV_MESSAGE), 0);
}

TEST_P(EachHijackedCallTest, MayBeAnsweredByAnotherThread) {
  Hijacker hijacker(type_of_call());
  OtherThread thread;
  const auto channel =
      InterceptedChannel(server_.address(), {thread.Doing(hijacker.AsAct())});
  ExpectHijacked(CallOn(channel));
}

TEST_P(EachHijackedCallTest, NeedsNoServer) {
  Hijacker hijacker(type_of_call());
  const auto channel =
      InterceptedChannel("rdma://no address", {hijacker.AsAct()});
  ExpectHijacked(CallOn(channel));
}

TEST_P(EachHijackedCallTest, MayFail) {
  Hijacker hijacker(type_of_call());
  hijacker.status = rpc::Status(rpc::StatusCode::DATA_LOSS, "hijacked");
  const auto channel =
      InterceptedChannel(server_.address(), {hijacker.AsAct()});
  EXPECT_TRUE(HasCode(CallOn(channel).status, rpc::StatusCode::DATA_LOSS));
}

INSTANTIATE_TEST_SUITE_P(All, EachHijackedCallTest,
                         testing::Combine(testing::ValuesIn(kAllClientApis),
                                          testing::ValuesIn(kAllTypes)),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  MethodOf(std::get<1>(info.param));
                         });

TEST_F(HijackingTest, AWriteMayBeFailed) {
  int writes = 0;
  bool failure_seen = false;
  const auto channel = InterceptedChannel(
      server_.address(), {[&](Batch* batch) {
        if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE) &&
            ++writes > 2) {
          batch->FailHijackedSendMessage();
        }
        if (batch->QueryInterceptionHookPoint(Hook::POST_SEND_MESSAGE)) {
          failure_seen = !batch->GetSendMessageStatus();
        }
        if (rpc::Status* const status = batch->GetRecvStatus()) {
          *status = rpc::Status(rpc::StatusCode::UNAVAILABLE, "two went");
        }
        if (batch->GetSendInitialMetadata() != nullptr) {
          return batch->Hijack();
        }
        batch->Proceed();
      }});
  const auto stub = Parcels::NewStub(channel);
  TimedContext context;
  Parcel response;
  const auto stream = stub->Upload(&context, &response);
  EXPECT_TRUE(stream->Write(Parcel()));
  EXPECT_TRUE(stream->Write(Parcel()));
  EXPECT_FALSE(stream->Write(Parcel()));
  EXPECT_TRUE(failure_seen);
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::UNAVAILABLE));
}

TEST_F(HijackingTest, AUnaryCallWithoutAResponseFails) {
  const auto channel = InterceptedChannel(
      server_.address(), {[](Batch* batch) {
        if (batch->QueryInterceptionHookPoint(Hook::PRE_RECV_MESSAGE)) {
          batch->FailHijackedRecvMessage();
        }
        if (batch->GetSendInitialMetadata() != nullptr) {
          return batch->Hijack();
        }
        batch->Proceed();
      }});
  TimedContext context;
  EXPECT_TRUE(HasCode(
      Call(ClientApi::kBlocking, RpcType::NORMAL_RPC, channel, &context).status,
      rpc::StatusCode::UNIMPLEMENTED));
}

TEST_F(HijackingTest, HijackingElsewhereIsProceeding) {
  const auto channel =
      InterceptedChannel(server_.address(), {[](Batch* batch) {
                           if (batch->GetSendInitialMetadata() != nullptr) {
                             return batch->Proceed();
                           }
                           batch->Hijack();
                         }});
  TimedContext context;
  EXPECT_OK(
      Call(ClientApi::kBlocking, RpcType::BIDI_STREAMING, channel, &context)
          .status);
}

TEST_F(HijackingTest, EveryInterceptorHearsOfTryCancel) {
  Hijacker hijacker(RpcType::BIDI_STREAMING);
  HookLog before;
  HookLog after;
  const auto channel = InterceptedChannel(
      server_.address(), {Noting(&before), hijacker.AsAct(), Noting(&after)});
  TimedContext context;
  const auto stream = Parcels::NewStub(channel)->Chat(&context);
  context.TryCancel();
  EXPECT_OK(stream->Finish());
  EXPECT_EQ(before.CountOf(Hook::PRE_SEND_CANCEL), 1);
  EXPECT_THAT(after.All(), ElementsAre("pre_send_cancel"));
}

// Makes the call itself, as a call of its own, and answers with what comes.
class Repeating final : public rpc::experimental::Interceptor {
 public:
  void Intercept(Batch* batch) override {
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE)) {
      request_ = *static_cast<const Parcel*>(batch->GetSendMessage());
      stub_ = Parcels::NewStub(batch->GetInterceptedChannel());
      stub_->async()->Unary(&context_, &request_, &response_,
                            [this, batch](rpc::Status status) {
                              status_ = std::move(status);
                              batch->Hijack();
                            });
      return;
    }
    if (batch->QueryInterceptionHookPoint(Hook::PRE_RECV_MESSAGE)) {
      *static_cast<Parcel*>(batch->GetRecvMessage()) = response_;
      *batch->GetRecvStatus() = status_;
    }
    batch->Proceed();
  }

 private:
  TimedContext context_;
  Parcel request_;
  Parcel response_;
  rpc::Status status_;
  std::unique_ptr<Parcels::Stub> stub_;
};

class RepeatingFactory final
    : public rpc::experimental::ClientInterceptorFactoryInterface {
 public:
  rpc::experimental::Interceptor* CreateClientInterceptor(
      rpc::experimental::ClientRpcInfo* /*info*/) override {
    return new Repeating();
  }
};

TEST_F(HijackingTest, AnInterceptorMakesCallsThatThoseAfterItSee) {
  HookLog before;
  HookLog after;
  std::vector<
      std::unique_ptr<rpc::experimental::ClientInterceptorFactoryInterface>>
      factories;
  factories.push_back(std::make_unique<ActingFactory>(Noting(&before)));
  factories.push_back(std::make_unique<ActingFactory>(nullptr));
  factories.push_back(std::make_unique<RepeatingFactory>());
  factories.push_back(std::make_unique<ActingFactory>(Noting(&after)));
  const auto channel = rpc::experimental::CreateCustomChannelWithInterceptors(
      server_.address(), rpc::InsecureChannelCredentials(),
      rpc::ChannelArguments(), std::move(factories));
  for (const bool by_callback : {false, true}) {
    before.Clear();
    after.Clear();
    TimedContext context;
    const Exchanged<Parcel> result =
        Call(by_callback ? ClientApi::kCallback : ClientApi::kBlocking,
             RpcType::NORMAL_RPC, channel, &context);
    EXPECT_OK(result.status);
    EXPECT_EQ(before.CountOf(Hook::PRE_SEND_INITIAL_METADATA), 1);
    EXPECT_EQ(before.CountOf(Hook::POST_RECV_STATUS), 1);
    EXPECT_EQ(after.CountOf(Hook::PRE_SEND_INITIAL_METADATA), 1);
    EXPECT_EQ(after.CountOf(Hook::POST_RECV_STATUS), 1);
  }
  EXPECT_EQ(service_.begun, 2);
}

}  // namespace
}  // namespace e2e
