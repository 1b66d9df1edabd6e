// The fixture of the tests of connecting: one event at a time, from both ends.
//
//   CmId* listener = Listen();
//   CmId* id = StartConnecting(listener->local_address());
//   CmEvent request = Expect(server(), Type::kConnectRequest);
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_CONFORMANCE_CONNECTION_FIXTURE_H_
#define VERBENA_TESTS_CONFORMANCE_CONNECTION_FIXTURE_H_

#include <optional>
#include <string>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {

class ConnectionFixture : public ConformanceTest {
 protected:
  using Type = CmEvent::Type;

  // Listens at a free port; null and a failed test where that fails.
  CmId* Listen(void* context = nullptr) {
    absl::StatusOr<CmId*> id =
        server().manager().Listen(ServerAddress(), 128, context);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : nullptr;
  }

  // Starts connecting a new QP of the client.
  CmId* StartConnecting(const SocketAddress& address,
                        const ConnectionParameters& parameters = {},
                        void* context = nullptr) {
    qp_ = client().CreateQp({});
    if (qp_ == nullptr) return nullptr;
    absl::StatusOr<CmId*> id = client().manager().Connect(
        address, qp_, parameters, pump().patience() / 2, context);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : nullptr;
  }

  // The next event; after a lost wait, an empty one of type kListenFailed.
  CmEvent Next(Side& side) {
    return pump()
        .Await(&side.manager())
        .value_or(CmEvent{.type = Type::kListenFailed});
  }
  // The next event, which must be of that type. Its id is null if it is not.
  CmEvent Expect(Side& side, Type type) {
    CmEvent event = Next(side);
    EXPECT_EQ(event.type, type) << event.status;
    return event.type == type ? event : CmEvent{.type = type};
  }

  // Private data as it arrives: padded with zeros to some length.
  static void ExpectPadded(const std::string& arrived,
                           const std::string& sent) {
    EXPECT_EQ(arrived.substr(0, sent.size()), sent);
    if (arrived.size() > sent.size()) {
      EXPECT_EQ(arrived.find_first_not_of('\0', sent.size()),
                std::string::npos);
    }
  }

  // No two neighbours alike.
  static std::string Bytes(size_t count) {
    std::string bytes(count, '\0');
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(255 - i);
    return bytes;
  }

  ibv_qp* qp_ = nullptr;  // of the last StartConnecting
};

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_CONNECTION_FIXTURE_H_
