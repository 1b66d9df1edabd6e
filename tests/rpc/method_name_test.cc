// Goal: servers see what a client's channel says of itself (authority, user
// agent) with calls of all forms, and methods keep their names. Method: the
// Echo service behind channels with and without arguments; names themselves.
#include "rpc/internal/method_name.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

using internal::DecodeOrigin;
using internal::EncodeOrigin;
using internal::MethodName;
using internal::OriginOfMethodName;
using internal::PathOfMethodName;

// What a handler sees.
struct Seen {
  std::string authority;
  std::string user_agent = "none";
  size_t pairs = 0;
};

class OriginTest : public ::testing::Test {
 protected:
  void Connect(const ChannelArguments& arguments,
               const std::function<void(ServerBuilder&)>& configure = {}) {
    echo_ = std::make_unique<EchoServer>(LoopbackOptions{.threads = 2},
                                         &service_, arguments, configure);
  }
  Seen Say(ClientContext& context) {
    Seen seen;
    service_.before = [&](ServerContext* server) {
      seen.authority = std::string(server->ExperimentalGetAuthority());
      const auto& metadata = server->client_metadata();
      const auto agent = metadata.find("user-agent");
      if (agent != metadata.end()) seen.user_agent = std::string(agent->second);
      seen.pairs = metadata.size();
    };
    SayResponse response;
    EXPECT_TRUE(echo_->stub().Say(&context, SayRequest(), &response).ok());
    return seen;
  }
  Seen Say() {
    ClientContext context;
    return Say(context);
  }

  SyncEcho service_;
  std::unique_ptr<EchoServer> echo_;
};

TEST_F(OriginTest, TheAddressIsTheAuthority) {
  Connect({});
  const std::string address = echo_->network().address();
  const Seen seen = Say();
  EXPECT_EQ(seen.authority, address.substr(address.find("://") + 3));
  EXPECT_EQ(seen.user_agent, "none");
  EXPECT_EQ(seen.pairs, 0u);
}

TEST_F(OriginTest, AChannelsAuthority) {
  ChannelArguments arguments;
  arguments.SetString("grpc.default_authority", "db.example");
  Connect(arguments);
  EXPECT_EQ(Say().authority, "db.example");
  EXPECT_EQ(Say().authority, "db.example");

  ClientContext named;
  named.set_authority("other.example");
  EXPECT_EQ(Say(named).authority, "other.example");

  ClientContext with_metadata;
  with_metadata.AddMetadata("user", "ada");
  const Seen seen = Say(with_metadata);
  EXPECT_EQ(seen.authority, "db.example");
  EXPECT_EQ(seen.pairs, 1u);
}

TEST_F(OriginTest, ChannelsInTheProcessHaveAnAuthorityToo) {
  Connect({});
  const auto stub =
      Echo::NewStub(echo_->server().InProcessChannel(ChannelArguments()));
  std::string authority;
  service_.before = [&](ServerContext* server) {
    authority = std::string(server->ExperimentalGetAuthority());
  };
  ClientContext context;
  SayResponse response;
  EXPECT_TRUE(stub->Say(&context, SayRequest(), &response).ok());
  EXPECT_EQ(authority, "inproc");
}

TEST_F(OriginTest, ChannelsDifferAtOneServer) {
  Connect({});
  ChannelArguments arguments;
  arguments.SetUserAgentPrefix("other");
  const auto stub = Echo::NewStub(CreateCustomChannel(
      echo_->network().address(), InsecureChannelCredentials(), arguments));
  EXPECT_EQ(Say().pairs, 0u);
  size_t pairs = 0;
  service_.before = [&](ServerContext* server) {
    pairs = server->client_metadata().size();
  };
  ClientContext context;
  SayResponse response;
  EXPECT_TRUE(stub->Say(&context, SayRequest(), &response).ok());
  EXPECT_EQ(pairs, 1u);
  EXPECT_EQ(Say().pairs, 0u);
}

TEST_F(OriginTest, AUserAgent) {
  ChannelArguments arguments;
  arguments.SetUserAgentPrefix("tool/2");
  arguments.SetString("grpc.secondary_user_agent", "(test)");
  Connect(arguments);
  EXPECT_EQ(Say().user_agent, "tool/2 verbena-c++ (test)");

  ClientContext context;
  context.AddMetadata("user", "ada");
  const Seen seen = Say(context);
  EXPECT_EQ(seen.user_agent, "tool/2 verbena-c++ (test)");
  EXPECT_EQ(seen.pairs, 2u);
}

class AgentSeer final : public experimental::Interceptor {
 public:
  explicit AgentSeer(std::vector<std::string>* seen) : seen_(*seen) {}
  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            experimental::InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      for (const auto& [key, value] : *methods->GetRecvInitialMetadata()) {
        seen_.emplace_back(value);
      }
    }
    methods->Proceed();
  }

 private:
  std::vector<std::string>& seen_;
};

class AgentSeers final
    : public experimental::ServerInterceptorFactoryInterface {
 public:
  explicit AgentSeers(std::vector<std::string>* seen) : seen_(seen) {}
  experimental::Interceptor* CreateServerInterceptor(
      experimental::ServerRpcInfo* info) override {
    seen_->emplace_back(info->method());
    return new AgentSeer(seen_);
  }

 private:
  std::vector<std::string>* const seen_;
};

TEST_F(OriginTest, InterceptorsSeeIt) {
  std::vector<std::string> seen;
  ChannelArguments arguments;
  arguments.SetUserAgentPrefix("tool/2");
  Connect(arguments, [&](ServerBuilder& builder) {
    std::vector<
        std::unique_ptr<experimental::ServerInterceptorFactoryInterface>>
        factories;
    factories.push_back(std::make_unique<AgentSeers>(&seen));
    builder.experimental().SetInterceptorCreators(std::move(factories));
  });
  const Seen by_handler = Say();
  EXPECT_EQ(seen, (std::vector<std::string>{"/rpc.testing.Echo/Say",
                                            "tool/2 verbena-c++"}));
  EXPECT_EQ(by_handler.user_agent, "tool/2 verbena-c++");
  EXPECT_FALSE(by_handler.authority.empty());
}

TEST_F(OriginTest, ALineBreakIsNoUserAgent) {
  ChannelArguments arguments;
  arguments.SetUserAgentPrefix("two\nlines");
  Connect(arguments);
  const Seen seen = Say();
  EXPECT_EQ(seen.user_agent, "none");
  EXPECT_FALSE(seen.authority.empty());
}

TEST_F(OriginTest, TooManyOriginsCostTheLastTheirs) {
  Connect({});
  std::string authority;
  service_.before = [&](ServerContext* server) {
    authority = std::string(server->ExperimentalGetAuthority());
  };
  const auto say_as = [&](const std::string& name) {
    ChannelArguments arguments;
    arguments.SetString("grpc.default_authority", name);
    const auto stub = Echo::NewStub(CreateCustomChannel(
        echo_->network().address(), InsecureChannelCredentials(), arguments));
    ClientContext context;
    SayResponse response;
    EXPECT_TRUE(stub->Say(&context, SayRequest(), &response).ok());
  };
  for (int i = 0; i < 1024; ++i) say_as("name" + std::to_string(i));
  EXPECT_EQ(authority, "name1023");
  say_as("name1024");
  EXPECT_EQ(authority, "");
  say_as("name5");
  EXPECT_EQ(authority, "name5");
}

TEST(MethodNameTest, HasAPathAndAnOrigin) {
  const std::string origin = EncodeOrigin("host:1", "me");
  const std::string name = MethodName("/a.B/C", origin);
  EXPECT_EQ(PathOfMethodName(name), "/a.B/C");
  EXPECT_EQ(OriginOfMethodName(name), origin);
  const auto decoded = DecodeOrigin(origin);
  ASSERT_NE(decoded, nullptr);
  EXPECT_EQ(decoded->authority(), "host:1");
  EXPECT_EQ(decoded->initial().find("user-agent")->second, "me");
}

TEST(MethodNameTest, ExampleOfTheSpecification) {
  EXPECT_EQ(MethodName("/a.B/C", EncodeOrigin("h:1", "")),
            std::string("/a.B/C\0\x80\x03h:1", 12));
}

TEST(MethodNameTest, MayBeAPathAlone) {
  EXPECT_EQ(EncodeOrigin("", ""), "");
  EXPECT_EQ(MethodName("/a.B/C", ""), "/a.B/C");
  EXPECT_EQ(PathOfMethodName("/a.B/C"), "/a.B/C");
  EXPECT_EQ(OriginOfMethodName("/a.B/C"), "");
  EXPECT_EQ(DecodeOrigin(""), nullptr);
}

TEST(MethodNameTest, KeepsThePathWhereBothAreTooLong) {
  const std::string path(1000, 'p');
  EXPECT_EQ(MethodName(path, std::string(23, 'o')).size(), 1024u);
  EXPECT_EQ(MethodName(path, std::string(24, 'o')), path);
}

TEST(MethodNameTest, AnOriginThatIsMalformedIsNone) {
  EXPECT_EQ(DecodeOrigin("\x01\x04"), nullptr);
  EXPECT_EQ(DecodeOrigin(std::string_view("\x01\x01\x01Xy", 5)), nullptr);
}

}  // namespace
}  // namespace rpc::testing
