// Goal: plugins take part in building every server, in gRPC's order, and what
// they register is served and kept.
// Method: one plugin that does what the running test says.
#include "rpc/server_builder_plugin.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the plugins of this process do now.
struct Behavior {
  std::function<void(ServerBuilder*)> update_builder;
  std::function<void(ChannelArguments*)> update_arguments;
  std::function<void(ServerInitializer*)> init_server;
  std::function<void(ServerInitializer*)> finish;
};

Behavior& TheBehavior() {
  static auto* const behavior = new Behavior;
  return *behavior;
}

template <class Argument>
void Do(const std::function<void(Argument*)>& action, Argument* argument) {
  if (action) action(argument);
}

class TestPlugin final : public ServerBuilderPlugin {
 public:
  std::string name() override { return "test"; }
  void UpdateServerBuilder(ServerBuilder* builder) override {
    Do(TheBehavior().update_builder, builder);
  }
  void UpdateChannelArguments(ChannelArguments* arguments) override {
    Do(TheBehavior().update_arguments, arguments);
  }
  void InitServer(ServerInitializer* initializer) override {
    Do(TheBehavior().init_server, initializer);
  }
  void Finish(ServerInitializer* initializer) override {
    Do(TheBehavior().finish, initializer);
  }
  void ChangeArguments(const std::string& name, void* value) override {}
};

class ServerBuilderPluginTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ServerBuilder::InternalAddPluginFactory(
        []() -> std::unique_ptr<ServerBuilderPlugin> {
          return std::make_unique<TestPlugin>();
        });
  }

  ServerBuilderPluginTest() {
    builder_.AddListeningPort(network_.address(), InsecureServerCredentials());
  }
  ~ServerBuilderPluginTest() override { TheBehavior() = {}; }

  Status Say() {
    const auto stub = Echo::NewStub(
        CreateChannel(network_.address(), InsecureChannelCredentials()));
    ClientContext context;
    SayResponse response;
    return stub->Say(&context, SayRequest(), &response);
  }

  LoopbackNetwork network_;
  ServerBuilder builder_;
};

TEST_F(ServerBuilderPluginTest, IsAskedInOrder) {
  std::vector<std::string> steps;
  SyncEcho service;
  builder_.RegisterService(&service);
  TheBehavior() = {
      .update_builder =
          [&](ServerBuilder* builder) {
            EXPECT_EQ(builder, &builder_);
            steps.push_back("builder");
          },
      .update_arguments =
          [&](ChannelArguments*) { steps.push_back("arguments"); },
      .init_server =
          [&](ServerInitializer* initializer) {
            EXPECT_THAT(*initializer->GetServiceList(),
                        ElementsAre("rpc.testing.Echo"));
            steps.push_back("init");
          },
      .finish = [&](ServerInitializer*) { steps.push_back("finish"); },
  };
  ASSERT_NE(builder_.BuildAndStart(), nullptr);
  EXPECT_THAT(steps, ElementsAre("builder", "arguments", "init", "finish"));
}

TEST_F(ServerBuilderPluginTest, ItsServiceIsServedAndKeptByTheServer) {
  std::weak_ptr<SyncEcho> kept;
  TheBehavior().init_server = [&](ServerInitializer* initializer) {
    const auto service = std::make_shared<SyncEcho>();
    kept = service;
    EXPECT_TRUE(initializer->RegisterService(service));
  };
  TheBehavior().finish = [](ServerInitializer* initializer) {
    EXPECT_THAT(*initializer->GetServiceList(),
                ElementsAre("rpc.testing.Echo"));
  };
  std::unique_ptr<Server> server = builder_.BuildAndStart();
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(Say().ok());
  EXPECT_FALSE(kept.expired());
  server = nullptr;
  EXPECT_TRUE(kept.expired());
}

TEST_F(ServerBuilderPluginTest, AServiceTwiceFailsTheServerAndSaysWhy) {
  SyncEcho service;
  builder_.RegisterService(&service);
  TheBehavior().init_server = [](ServerInitializer* initializer) {
    EXPECT_FALSE(initializer->RegisterService(std::make_shared<SyncEcho>()));
    EXPECT_EQ(initializer->status().code(), absl::StatusCode::kAlreadyExists);
  };
  const absl::Status status = builder_.BuildAndStartOrStatus().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/rpc.testing.Echo/Say"));
}

TEST_F(ServerBuilderPluginTest, ChangesTheBuilder) {
  SyncEcho service;
  TheBehavior().update_builder = [&](ServerBuilder* builder) {
    builder->RegisterService(&service);
  };
  const std::unique_ptr<Server> server = builder_.BuildAndStart();
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(Say().ok());
}

TEST_F(ServerBuilderPluginTest, ChangesTheArguments) {
  TheBehavior().update_arguments = [](ChannelArguments* arguments) {
    arguments->SetInt("verbena.handler_threads", 0);
  };
  EXPECT_EQ(builder_.BuildAndStartOrStatus().status().code(),
            absl::StatusCode::kInvalidArgument);
}

// ---- Options ----

// Does what it is told.
class TestOption final : public ServerBuilderOption {
 public:
  std::function<void(ChannelArguments*)> update_arguments;
  std::function<void(std::vector<std::unique_ptr<ServerBuilderPlugin>>*)>
      update_plugins;

  void UpdateArguments(ChannelArguments* arguments) override {
    Do(update_arguments, arguments);
  }
  void UpdatePlugins(
      std::vector<std::unique_ptr<ServerBuilderPlugin>>* plugins) override {
    Do(update_plugins, plugins);
  }
};

TEST_F(ServerBuilderPluginTest, AnOptionIsAskedBeforeThePlugins) {
  std::vector<std::string> steps;
  auto option = std::make_unique<TestOption>();
  option->update_arguments = [&](auto*) { steps.push_back("arguments"); };
  option->update_plugins = [&](auto* plugins) {
    EXPECT_EQ(plugins->size(), 1u);
    plugins->push_back(std::make_unique<TestPlugin>());
    steps.push_back("plugins");
  };
  TheBehavior().update_builder = [&](auto*) { steps.push_back("builder"); };
  builder_.SetOption(std::move(option));
  EXPECT_THAT(steps, ElementsAre());
  ASSERT_NE(builder_.BuildAndStart(), nullptr);
  EXPECT_THAT(steps, ElementsAre("arguments", "plugins", "builder", "builder"));
}

TEST_F(ServerBuilderPluginTest, AnOptionOfAPluginCounts) {
  TheBehavior().update_builder = [](ServerBuilder* builder) {
    builder->AddChannelArgument("verbena.handler_threads", 0);
  };
  EXPECT_EQ(builder_.BuildAndStartOrStatus().status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ServerBuilderPluginTest, TheLastOptionForAnArgumentCounts) {
  const auto set_threads = [](int value) {
    auto option = std::make_unique<TestOption>();
    option->update_arguments = [value](ChannelArguments* arguments) {
      arguments->SetInt("verbena.handler_threads", value);
    };
    return option;
  };
  builder_.SetOption(set_threads(0));
  builder_.AddChannelArgument("verbena.handler_threads", 0);
  builder_.SetOption(set_threads(2));
  EXPECT_TRUE(builder_.BuildAndStartOrStatus().ok());

  ServerBuilder another;
  another.AddListeningPort(network_.address(), InsecureServerCredentials());
  another.SetOption(set_threads(2));
  another.AddChannelArgument("verbena.handler_threads", 0);
  EXPECT_EQ(another.BuildAndStartOrStatus().status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ServerBuilderPluginTest, ArgumentsAreOfManyTypes) {
  int anything = 0;
  builder_.AddChannelArgument("verbena.max_connections", size_t{7});
  builder_.AddChannelArgument("verbena.allow_other_users", true);
  builder_.AddChannelArgument("verbena.device", "soft");
  builder_.AddChannelArgument("another.pointer", static_cast<void*>(&anything));
  EXPECT_TRUE(builder_.BuildAndStartOrStatus().ok());

  ServerBuilder another;
  another.AddListeningPort(network_.address(), InsecureServerCredentials());
  another.AddChannelArgument("verbena.pollers", static_cast<void*>(&anything));
  EXPECT_THAT(std::string(another.BuildAndStartOrStatus().status().message()),
              HasSubstr("verbena.pollers is a number, not a pointer"));
}

}  // namespace
}  // namespace rpc::testing
