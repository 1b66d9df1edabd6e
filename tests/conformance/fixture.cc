#include "tests/conformance/fixture.h"

#include <dirent.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <utility>

namespace rdma::conformance {
namespace {

constexpr int kBacklog = 128;

// Open descriptors of this process, but for the one that counts them.
int CountDescriptors() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int count = -3;  // ".", "..", and the directory itself
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

// Pieces of anonymous shared memory that this process maps: a peer's arenas, on
// a device that shares memory.
int CountSharedMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") != std::string::npos) ++count;
  }
  return count;
}

std::string_view NameOf(CmEvent::Type type) {
  switch (type) {
    case CmEvent::Type::kConnectRequest:
      return "connect request";
    case CmEvent::Type::kEstablished:
      return "established";
    case CmEvent::Type::kConnectFailed:
      return "connect failed";
    case CmEvent::Type::kDisconnected:
      return "disconnected";
    case CmEvent::Type::kListenFailed:
      return "listen failed";
  }
  return "unknown";
}

// Whether `event` is what a connection in the making needs next.
bool IsEvent(const std::optional<CmEvent>& event, CmEvent::Type type) {
  if (event.has_value() && event->type == type) return true;
  if (event.has_value()) {
    ADD_FAILURE() << "expected the event '" << NameOf(type) << "', got '"
                  << NameOf(event->type) << "': " << event->status;
  }
  return false;
}

}  // namespace

std::vector<Variant> AllVariants() {
  return {{.name = "TwoDevices"},
          {.name = "OneDevice", .one_device = true},
          {.name = "SharedQueues", .single_threaded_queues = false}};
}

void PrintTo(const Variant& variant, std::ostream* os) { *os << variant.name; }

std::vector<Variant> OneVariant() { return {{.name = "TwoDevices"}}; }

std::unique_ptr<Device> OpenDevice(Provider& provider, End end,
                                   const DeviceOptions& options) {
  const ProviderUnderTest& under_test = TheProviderUnderTest();
  std::string name =
      end == End::kClient ? under_test.client_device : under_test.server_device;
  if (name.empty()) {
    const std::vector<std::string> names = provider.ListDevices();
    if (names.empty()) {
      ADD_FAILURE() << "provider " << provider.name() << " lists no device";
      return nullptr;
    }
    name = names.front();
  }
  absl::StatusOr<std::unique_ptr<Device>> device = provider.Open(name, options);
  if (!device.ok()) {
    ADD_FAILURE() << "opening " << name << ": " << device.status();
    return nullptr;
  }
  return *std::move(device);
}

namespace {

// librdmacm opens a device for itself with the first id that is bound to it,
// and keeps it: done here, so that no later test seems to leak that.
void LetLibrariesOpenTheDevices(Provider& provider) {
  for (const End end : {End::kClient, End::kServer}) {
    const std::unique_ptr<Device> device = OpenDevice(provider, end, {});
    ASSERT_NE(device, nullptr);
    const auto manager = device->CreateConnectionManager();
    ASSERT_TRUE(manager.ok()) << manager.status();
    const absl::StatusOr<SocketAddress> address = SocketAddress::FromNumeric(
        end == End::kClient ? OneDeviceAddress()
                            : TheProviderUnderTest().server_address,
        0);
    ASSERT_TRUE(address.ok()) << address.status();
    const auto listener = (*manager)->Listen(*address, kBacklog, nullptr);
    ASSERT_TRUE(listener.ok()) << listener.status();
  }
}

}  // namespace

void ConformanceTest::SetUpTestSuite() {
  static const bool done = [] {
    const std::unique_ptr<Provider> provider = TheProviderUnderTest().make();
    LetLibrariesOpenTheDevices(*provider);
    return true;
  }();
  EXPECT_TRUE(done);
}

void ConformanceTest::SetUp() {
  provider_ = TheProviderUnderTest().make();
  ASSERT_NE(provider_, nullptr);
  const DeviceOptions options = {.single_threaded_queues =
                                     GetParam().single_threaded_queues};
  client_device_ = OpenDevice(*provider_, End::kClient, options);
  ASSERT_NE(client_device_, nullptr);
  Device* server_device = client_device_.get();
  if (!GetParam().one_device) {
    server_device_ = OpenDevice(*provider_, End::kServer, options);
    ASSERT_NE(server_device_, nullptr);
    server_device = server_device_.get();
  }
  client_ = std::make_unique<Side>(client_device_.get(), &pump_);
  server_ = std::make_unique<Side>(server_device, &pump_);
  ASSERT_TRUE(client_->ok() && server_->ok());
}

void ConformanceTest::TearDown() {
  client_.reset();
  server_.reset();
  client_device_.reset();
  server_device_.reset();
  provider_.reset();
  // The first test may leave what a library opens once for the whole process;
  // every other one must leave as many as that.
  static const int settled = CountDescriptors();
  EXPECT_EQ(CountDescriptors(), settled) << "descriptors leaked";
  static const int settled_mappings = CountSharedMappings();
  EXPECT_EQ(CountSharedMappings(), settled_mappings) << "mappings leaked";
}

SocketAddress ConformanceTest::ServerAddress(uint16_t port) {
  absl::StatusOr<SocketAddress> address = SocketAddress::FromNumeric(
      GetParam().one_device ? OneDeviceAddress()
                            : TheProviderUnderTest().server_address,
      port);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.ok() ? *address : SocketAddress();
}

bool ConformanceTest::Connect(const LinkOptions& options, Link* link) {
  ibv_qp* client_qp = client().CreateQp(options.client);
  ibv_qp* server_qp = server().CreateQp(options.server);
  return client_qp != nullptr && server_qp != nullptr &&
         Connect(client_qp, server_qp, options, link);
}

bool ConformanceTest::Connect(ibv_qp* client_qp, ibv_qp* server_qp,
                              const LinkOptions& options, Link* link) {
  link->client = client_qp;
  link->server = server_qp;
  if (listener_ == nullptr) {
    absl::StatusOr<CmId*> listener =
        server().manager().Listen(ServerAddress(), kBacklog, nullptr);
    EXPECT_TRUE(listener.ok()) << listener.status();
    if (!listener.ok()) return false;
    listener_ = *listener;
  }
  absl::StatusOr<CmId*> id = client().manager().Connect(
      listener_->local_address(), client_qp, options.client_parameters,
      pump_.patience(), nullptr);
  EXPECT_TRUE(id.ok()) << id.status();
  if (!id.ok()) return false;
  link->client_id = *id;

  std::optional<CmEvent> request = pump_.Await(&server().manager());
  if (!IsEvent(request, CmEvent::Type::kConnectRequest)) return false;
  link->server_id = request->id;
  const absl::Status accepted = server().manager().Accept(
      request->id, server_qp, options.server_parameters);
  EXPECT_TRUE(accepted.ok()) << accepted;
  return accepted.ok() &&
         IsEvent(pump_.Await(&client().manager()),
                 CmEvent::Type::kEstablished) &&
         IsEvent(pump_.Await(&server().manager()), CmEvent::Type::kEstablished);
}

void ConformanceTest::Disconnect(Link* link) {
  client().manager().Disconnect(link->client_id);
  IsEvent(pump_.Await(&server().manager()), CmEvent::Type::kDisconnected);
  server().manager().Disconnect(link->server_id);
  client().DestroyQp(link->client);
  server().DestroyQp(link->server);
  client().manager().Destroy(link->client_id);
  server().manager().Destroy(link->server_id);
  *link = Link();
}

std::optional<ibv_async_event> ConformanceTest::AwaitAsyncEvent(
    Device& device) {
  ibv_async_event event = {};
  const bool found = pump_.Until(
      [&] { return device.GetAsyncEvent(&event) == 0; }, "an async event");
  if (!found) return std::nullopt;
  device.AckAsyncEvent(&event);
  return event;
}

void ConformanceTest::ExpectNoAsyncEvent(Device& device) {
  pump_.TurnFor(pump_.silence());
  ibv_async_event event = {};
  errno = 0;
  const int result = device.GetAsyncEvent(&event);
  EXPECT_EQ(result, -1) << "an event of type " << event.event_type;
  EXPECT_EQ(errno, EAGAIN);
  if (result == 0) device.AckAsyncEvent(&event);
}

ibv_qp_state ConformanceTest::StateOf(Device& device, ibv_qp* qp) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  EXPECT_EQ(device.QueryQp(qp, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

void ConformanceTest::MoveToError(Device& device, ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(device.ModifyQp(qp, &attr, IBV_QP_STATE), 0);
}

void ConnectedTest::SetUp() {
  ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
  client_buffer_ = client().Allocate(kBufferBytes);
  server_buffer_ = server().Allocate(kBufferBytes);
  ASSERT_FALSE(client_buffer_.empty() || server_buffer_.empty());
  client_buffer_.Fill(1);
  ASSERT_TRUE(Connect(Options(), &link_));
  client_qp_ = link_.client;
  server_qp_ = link_.server;
}

void ConnectedTest::TearDown() {
  // QPs go before the memory that their requests name.
  if (link_.client != nullptr && client_qp_ != nullptr) {
    client().DestroyQp(link_.client);
  }
  if (link_.server != nullptr && server_qp_ != nullptr) {
    server().DestroyQp(link_.server);
  }
  client_buffer_ = Region();
  server_buffer_ = Region();
  ConformanceTest::TearDown();
}

void ConnectedTest::PostServerReceives(int count, size_t bytes,
                                       uint64_t first_wr_id) {
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(0, PostReceive(server_qp_,
                             {.wr_id = first_wr_id + i,
                              .sges = {server_buffer_.sge(i * bytes, bytes)}}));
  }
}

}  // namespace rdma::conformance
