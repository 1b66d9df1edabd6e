// Goal: metadata that are illegal, malformed, or too much end their call, of
// any kind and whichever side sends them, with gRPC's status, and no other: the
// connection lives on. Method: clients and handlers that add such metadata,
// which rpc/ does not let out; and peers that make their frames themselves, so
// that it has to refuse them, also what else only they can send. Messages are
// bad_input_test's.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/raw_peers.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

using Pair = std::pair<std::string, std::string>;
using Pairs = std::vector<Pair>;

constexpr size_t kFrameHeaderBytes = 8192;  // the transport's limit

const Pairs& IllegalPairs() {
  static const auto* const pairs = new Pairs{
      {"Upper", "value"},      {"k\xc3\xa9y", "value"},  // e acute, UTF-8
      {"", "value"},           {"with space", "value"},
      {":path", "value"},      {"key\n", "value"},
      {"slash/bin", "value"},  {"Upper-bin", "value"},
      {"key", "caf\xc3\xa9"},  {"key", "line\n"},
      {"key", "\x7f"},         {"key", std::string(1, '\0')},
      {"key-bin-not", "\xab"},
  };
  return *pairs;
}

Pairs LegalPairs() {
  return {{"a.b_c-9", " ~"}, {"any-bin", std::string("\0\xff\n", 3)}};
}

// So much for a limit, which counts 32 bytes more for each pair: 300 of them
// are 10,200 bytes, and 1,500 on the wire.
Pairs ManySmallPairs() { return Pairs(300, {"k", "v"}); }
Pairs OneLargePair() {
  return {{"key", std::string(2 * kFrameHeaderBytes, 'v')}};
}

// What a handler does with them.
enum class Where { kInitial, kInitialAlone, kTrailing };

constexpr Where kAllWheres[] = {Where::kInitial, Where::kInitialAlone,
                                Where::kTrailing};

class BadMetadataTest : public testing::TestWithParam<RpcType> {
 private:
  // Handlers use them, so the server goes first.
  absl::Mutex mutex_;
  Where where_ ABSL_GUARDED_BY(mutex_) = Where::kInitial;
  Pairs pairs_ ABSL_GUARDED_BY(mutex_);

 protected:
  BadMetadataTest()
      : service_([this](rpc::ServerContext* context) { Answer(*context); }) {}

  void Start(const Arguments& server = {}, const Arguments& client = {}) {
    ends_.emplace(&service_, server, client);
    ASSERT_TRUE(ends_->ok());
  }

  // With metadata of the client.
  Exchanged<Parcel> Call(const Pairs& pairs = {}) {
    TimedContext context;
    for (const auto& [key, value] : pairs) context.AddMetadata(key, value);
    const auto result = Exchange<Parcel, Parcel>(ends_->channel(), type_, path_,
                                                 &context, {ParcelFor(2)});
    may_have_run_ = context.may_have_run();
    return result;
  }

  // With metadata of the handler.
  Exchanged<Parcel> CallForMetadata(Where where, const Pairs& pairs) {
    SetAnswer(where, pairs);
    const auto result = Call();
    EXPECT_TRUE(Eventually([&] { return service_.running == 0; }));
    SetAnswer(Where::kInitial, {});
    return result;
  }

  void ExpectAlive() {
    EXPECT_OK(Call().status);
    EXPECT_TRUE(ends_->IsAlive());
  }

  // Where several responses came before the metadata.
  size_t ResponsesBefore(Where where) const {
    return where == Where::kTrailing && ServerStreams(type_) ? 2 : 0;
  }

  const RpcType type_ = GetParam();
  const std::string path_ = absl::StrCat("/e2e.Parcels/", MethodOf(type_));
  ParcelService service_;
  std::optional<OneConnection> ends_;
  bool may_have_run_ = false;  // the last one

 private:
  void SetAnswer(Where where, const Pairs& pairs) {
    service_.initial_metadata_alone = where == Where::kInitialAlone;
    absl::MutexLock lock(&mutex_);
    where_ = where;
    pairs_ = pairs;
  }
  void Answer(rpc::ServerContext& context) {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, value] : pairs_) {
      if (where_ == Where::kTrailing) {
        context.AddTrailingMetadata(key, value);
      } else {
        context.AddInitialMetadata(key, value);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, BadMetadataTest, testing::ValuesIn(kAllTypes),
                         NameOfType);

// ---- That rpc/ does not let out.

TEST_P(BadMetadataTest, WhatIsIllegalAClientDoesNotSend) {
  Start();
  for (const Pair& pair : IllegalPairs()) {
    const auto result = Call({pair});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL))
        << testing::PrintToString(pair);
    EXPECT_TRUE(Names(result.status, "illegal")) << result.status;
    EXPECT_FALSE(may_have_run_);
  }
  EXPECT_EQ(service_.begun, 0);
  EXPECT_OK(Call(LegalPairs()).status);
  ExpectAlive();
}

TEST_P(BadMetadataTest, WhatIsIllegalAServerDoesNotSend) {
  Start();
  for (const Where where : kAllWheres) {
    for (const Pair& pair : IllegalPairs()) {
      const auto result = CallForMetadata(where, {pair});
      EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL))
          << testing::PrintToString(pair);
      EXPECT_TRUE(Names(result.status, "illegal")) << result.status;
      EXPECT_EQ(result.responses.size(), ResponsesBefore(where));
    }
    EXPECT_OK(CallForMetadata(where, LegalPairs()).status);
    ExpectAlive();
  }
}

// ---- Limits.

TEST_P(BadMetadataTest, MoreThanAServerTakesIsRefused) {
  Start();
  for (const bool fits_frame : {true, false}) {
    const auto result = Call(fits_frame ? ManySmallPairs() : OneLargePair());
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(result.status, "8192")) << result.status;
    EXPECT_EQ(may_have_run_, fits_frame);
  }
  EXPECT_EQ(service_.begun, 0);
  ExpectAlive();
}

TEST_P(BadMetadataTest, MoreThanAClientTakesIsRefused) {
  Start();
  for (const Where where : kAllWheres) {
    const auto result = CallForMetadata(where, ManySmallPairs());
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(result.status, "8192")) << result.status;
    EXPECT_EQ(result.responses.size(), ResponsesBefore(where));
    ExpectAlive();
  }
}

TEST_P(BadMetadataTest, MoreThanAFrameTakesAServerDoesNotSend) {
  Start();
  for (const Where where : kAllWheres) {
    const auto result = CallForMetadata(where, OneLargePair());
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(result.status, absl::StrCat(kFrameHeaderBytes)))
        << result.status;
    EXPECT_EQ(result.responses.size(), ResponsesBefore(where));
    ExpectAlive();
  }
}

TEST_P(BadMetadataTest, EachSideHasALimitOfItsOwn) {
  const Arguments more = {{"grpc.max_metadata_size", 20'000}};
  Start(more);
  EXPECT_OK(Call(ManySmallPairs()).status);
  EXPECT_TRUE(HasCode(CallForMetadata(Where::kInitial, ManySmallPairs()).status,
                      rpc::StatusCode::RESOURCE_EXHAUSTED));
  Start({}, more);
  EXPECT_TRUE(HasCode(Call(ManySmallPairs()).status,
                      rpc::StatusCode::RESOURCE_EXHAUSTED));
  for (const Where where : kAllWheres) {
    EXPECT_OK(CallForMetadata(where, ManySmallPairs()).status);
  }
}

// ---- From peers that send them all the same.

// Header blocks that may be in no frame of a call.
std::vector<std::string> BadBlocks() {
  std::vector<std::string> blocks = {
      "\x7f",  // no kind of entry
      "\x01",  // cut off, here and below
      "\x01\x05",
      "\x01\x03key\x05v",
      "\x01\xff\xff\xff\xff\xff",  // a length of more than 32 bits
  };
  for (const auto& [key, value] : IllegalPairs()) {
    blocks.push_back(HeaderEntry(kInitialMetadata, key, value));
  }
  return blocks;
}

// What only a server's last frame may hold.
std::vector<std::string> LastBlocks() {
  return {HeaderEntry(kTrailingMetadata, "key", "value"),
          HeaderEntry(kStatusMessage, "", "text")};
}

TEST_P(BadMetadataTest, AServerRefusesWhatIsMalformed) {
  Start();
  std::vector<std::string> blocks = BadBlocks();
  for (const std::string& block : LastBlocks()) blocks.push_back(block);
  const RawFrame more = {.has_message = true};
  const RawFrame half_close = {.end = true};
  for (const std::string& block : blocks) {
    for (const bool at_once : {true, false}) {
      const RawFrame open = {
          .header = block, .has_message = true, .end = at_once};
      EXPECT_EQ(
          CallRaw(*ends_->channel(), path_.c_str(),
                  at_once ? std::vector<RawFrame>{open}
                          : std::vector<RawFrame>{open, more, half_close}),
          rpc::StatusCode::INTERNAL)
          << testing::PrintToString(block);
    }
  }
  EXPECT_EQ(service_.begun, 0);
  const RawFrame good = {
      .header = HeaderEntry(kInitialMetadata, "key", "value"),
      .has_message = true,
      .end = true};
  EXPECT_EQ(CallRaw(*ends_->channel(), path_.c_str(), {good}),
            rpc::StatusCode::OK);
  ExpectAlive();
}

class BadLaterMetadataTest : public BadMetadataTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, BadLaterMetadataTest,
                         testing::Values(RpcType::CLIENT_STREAMING,
                                         RpcType::BIDI_STREAMING),
                         NameOfType);

TEST_P(BadLaterMetadataTest, AServerRefusesMetadataOfLaterFrames) {
  Start();
  std::vector<std::string> blocks = BadBlocks();
  for (const std::string& block : LastBlocks()) blocks.push_back(block);
  blocks.push_back(HeaderEntry(kInitialMetadata, "key", "value"));
  for (const std::string& block : blocks) {
    for (const bool ends_it : {false, true}) {
      const RawFrame late = {
          .header = block, .has_message = true, .end = ends_it};
      EXPECT_EQ(CallRaw(*ends_->channel(), path_.c_str(),
                        {{.has_message = true}, late, {.end = true}}),
                rpc::StatusCode::INTERNAL)
          << testing::PrintToString(block);
    }
  }
  ExpectAlive();
}

class RawServerTest : public BadMetadataTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.status().ok()) << server_.status();
    channel_ = Client(server_.address()).shared_channel();
    ExpectGood();
    peer_ = server_.last_peer();
  }

  rpc::Status CallFor(std::vector<RawFrame> answer) {
    server_.SetAnswer(std::move(answer));
    TimedContext context;
    return Exchange<Parcel, Parcel>(channel_, type_, path_, &context,
                                    {ParcelFor(1)})
        .status;
  }

  // Also by the first connection, once that is known.
  void ExpectGood() {
    EXPECT_OK(CallFor(
        {{.has_message = true},
         {.header = HeaderEntry(kTrailingMetadata, "k", "v"), .end = true}}));
    if (!peer_.empty()) {
      EXPECT_EQ(server_.last_peer(), peer_);
    }
  }

  RawServer server_;
  std::shared_ptr<rpc::Channel> channel_;
  std::string peer_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, RawServerTest, testing::ValuesIn(kAllTypes),
                         NameOfType);

TEST_P(RawServerTest, AClientRefusesWhatIsMalformed) {
  const RawFrame message = {.has_message = true};
  const RawFrame end = {.end = true};
  const auto refuses = [&](const std::vector<RawFrame>& answer) {
    EXPECT_TRUE(HasCode(CallFor(answer), rpc::StatusCode::INTERNAL));
  };
  for (const std::string& block : BadBlocks()) {
    SCOPED_TRACE(testing::PrintToString(block));
    refuses({{.header = block, .has_message = true, .end = true}});
    refuses({{.header = block, .end = true, .status_code = 5}});
    refuses({{.header = block, .has_message = true}, end});
    refuses({{.header = block}, message, end});
    refuses({message, {.header = block, .end = true}});
  }
  for (const std::string& block : LastBlocks()) {
    SCOPED_TRACE(testing::PrintToString(block));
    refuses({{.header = block, .has_message = true}, end});
    refuses({{.header = block}, message, end});
  }
  const std::string late = HeaderEntry(kInitialMetadata, "key", "value");
  refuses({message, {.header = late, .end = true}});
  refuses({message, {.header = late}, end});
  const std::string text = HeaderEntry(kStatusMessage, "", "one");
  refuses({message, {.header = absl::StrCat(text, text), .end = true}});
  ExpectGood();
}

TEST_P(RawServerTest, ACodeThatIsNoneIsUnknown) {
  for (const uint32_t code : {17u, 99u, 0xffffffffu}) {
    EXPECT_TRUE(HasCode(
        CallFor({{.has_message = true}, {.end = true, .status_code = code}}),
        rpc::StatusCode::UNKNOWN))
        << code;
    EXPECT_TRUE(HasCode(CallFor({{.end = true, .status_code = code}}),
                        rpc::StatusCode::UNKNOWN))
        << code;
  }
  ExpectGood();
}

TEST_P(RawServerTest, ASecondResponseToACallThatHasOneIsUnimplemented) {
  for (const size_t bytes : {0u, 9'000u}) {
    const std::string content = ParcelOf(bytes).SerializeAsString();
    const RawFrame message = {.has_message = true, .message = content};
    const RawFrame end = {.end = true};
    const RawFrame last = {
        .has_message = true, .message = content, .end = true};
    for (const auto& answer : {std::vector<RawFrame>{message, message, end},
                               std::vector<RawFrame>{message, last}}) {
      const rpc::Status status = CallFor(answer);
      EXPECT_TRUE(HasCode(status, ServerStreams(type_)
                                      ? rpc::StatusCode::OK
                                      : rpc::StatusCode::UNIMPLEMENTED));
      EXPECT_EQ(Names(status, "second response"), !ServerStreams(type_));
    }
  }
  ExpectGood();
}

}  // namespace
}  // namespace e2e
