// Goal: addresses of listeners behave as TCP's do: exact ones, wildcards of
// both families, conflicts between them, and ports that are picked. Method:
// real listeners of this process on ports that it picks itself.
#include "rdma_transport/software/shm/listener_names.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

uint32_t NextRandom() {
  static uint32_t state = static_cast<uint32_t>(getpid()) * 2654435761u;
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

absl::StatusOr<BoundSocket> Bind(const char* host, uint16_t port) {
  return BindListener(*SocketAddress::FromNumeric(host, port), 4, NextRandom);
}

ConnectResult TryConnect(const char* host, uint16_t port) {
  UniqueFd socket;
  return ConnectToListener(*SocketAddress::FromNumeric(host, port), &socket);
}

TEST(ListenerNamesTest, PicksAPortAndIsFoundThere) {
  const auto bound = Bind("127.0.0.1", 0);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const uint16_t port = bound->address.port();
  EXPECT_GE(port, 32768);
  EXPECT_EQ(TryConnect("127.0.0.1", port), ConnectResult::kConnected);
  EXPECT_EQ(TryConnect("127.0.0.2", port), ConnectResult::kNobody);
  EXPECT_EQ(TryConnect("::1", port), ConnectResult::kNobody);
}

TEST(ListenerNamesTest, TheNameGoesWithTheSocket) {
  uint16_t port;
  {
    const auto bound = Bind("127.0.0.1", 0);
    ASSERT_TRUE(bound.ok());
    port = bound->address.port();
  }
  EXPECT_EQ(TryConnect("127.0.0.1", port), ConnectResult::kNobody);
  EXPECT_TRUE(Bind("127.0.0.1", port).ok());
}

TEST(ListenerNamesTest, AWildcardServesAllAddressesOfItsFamily) {
  const auto bound = Bind("0.0.0.0", 0);
  ASSERT_TRUE(bound.ok());
  const uint16_t port = bound->address.port();
  EXPECT_EQ(TryConnect("127.0.0.1", port), ConnectResult::kConnected);
  EXPECT_EQ(TryConnect("127.1.2.3", port), ConnectResult::kConnected);
  EXPECT_EQ(TryConnect("::1", port), ConnectResult::kNobody);
  EXPECT_EQ(TryConnect("::ffff:127.0.0.1", port), ConnectResult::kConnected)
      << "an IPv4 address within IPv6";
}

TEST(ListenerNamesTest, TheWildcardOfIpv6ServesIpv4Too) {
  const auto bound = Bind("::", 0);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(TryConnect("::1", bound->address.port()),
            ConnectResult::kConnected);
  EXPECT_EQ(TryConnect("127.0.0.1", bound->address.port()),
            ConnectResult::kConnected);
}

TEST(ListenerNamesTest, ConnectingToAWildcardMeansThisHost) {
  const auto bound = Bind("127.0.0.1", 0);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(TryConnect("0.0.0.0", bound->address.port()),
            ConnectResult::kConnected);
}

struct Conflict {
  const char* first;
  const char* second;
  bool conflicts;
};

class ListenerConflictTest : public testing::TestWithParam<Conflict> {};

TEST_P(ListenerConflictTest, IsSeenInBothOrders) {
  for (bool swapped : {false, true}) {
    const char* const first = swapped ? GetParam().second : GetParam().first;
    const char* const second = swapped ? GetParam().first : GetParam().second;
    const auto bound = Bind(first, 0);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const auto other = Bind(second, bound->address.port());
    EXPECT_EQ(!other.ok(), GetParam().conflicts)
        << first << " then " << second << ": " << other.status();
    if (!other.ok()) {
      EXPECT_EQ(other.status().code(), absl::StatusCode::kAlreadyExists);
      EXPECT_TRUE(absl::StrContains(other.status().message(),
                                    absl::StrCat("process ", getpid())))
          << other.status();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, ListenerConflictTest,
    testing::Values(Conflict{"127.0.0.1", "127.0.0.1", true},
                    Conflict{"127.0.0.1", "127.0.0.2", false},
                    Conflict{"127.0.0.1", "0.0.0.0", true},
                    Conflict{"127.0.0.1", "::", true},
                    Conflict{"127.0.0.1", "::1", false},
                    Conflict{"::1", "::", true},
                    Conflict{"::1", "0.0.0.0", false},
                    Conflict{"0.0.0.0", "::", true},
                    Conflict{"::ffff:127.0.0.1", "127.0.0.1", true}));

TEST(ListenerNamesTest, AFullBacklogIsToBeTriedAgain) {
  const auto bound = Bind("127.0.0.1", 0);
  ASSERT_TRUE(bound.ok());
  ConnectResult result = ConnectResult::kConnected;
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 100 && result == ConnectResult::kConnected; ++i) {
    result = ConnectToListener(bound->address, &sockets.emplace_back());
  }
  EXPECT_EQ(result, ConnectResult::kBusy);
}

TEST(ListenerNamesTest, KnowsTheAddressesOfThisHost) {
  for (const char* host :
       {"127.0.0.1", "127.255.0.9", "::1", "0.0.0.0", "::"}) {
    EXPECT_TRUE(IsAddressOfThisHost(*SocketAddress::FromNumeric(host, 1)))
        << host;
  }
  // Addresses that are reserved for documentation.
  for (const char* host : {"192.0.2.1", "2001:db8::1"}) {
    EXPECT_FALSE(IsAddressOfThisHost(*SocketAddress::FromNumeric(host, 1)))
        << host;
    EXPECT_EQ(Bind(host, 0).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace rdma::soft
