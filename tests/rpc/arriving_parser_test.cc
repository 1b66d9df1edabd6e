// Goal: a message is what protobuf would have made of it, wherever its strings
// begin and end, however it comes, and whatever is wrong with it; long strings
// are read to where they belong, and keep the memory that they have. Method:
// random fields in protobuf's format, correct ones and broken ones, in pieces
// of any size, against ParseFromString. A failure prints the seed that repeats
// it: --test_env=VERBENA_SEED=N.
#include "rpc/internal/arriving_parser.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "tests/rpc/bytes_in_order.h"
#include "tests/rpc/old_strings.pb.h"
#include "tests/rpc/pieces_that_come.h"
#include "tests/rpc/strings.pb.h"

namespace rpc::internal {
namespace {

using testing::BytesInOrder;
using testing::OldStrings;
using testing::Strings;

// But for what is read in place.
class PiecesAndStrings final : public testing::PiecesThatCome {
 public:
  using PiecesThatCome::PiecesThatCome;

  bool can_read_into() const override { return true; }
  bool ReadInto(absl::Span<std::byte> to) override {
    const std::string_view bytes = Take(to.size());
    bytes.copy(reinterpret_cast<char*>(to.data()), bytes.size());
    in_place += bytes.size();
    return bytes.size() == to.size();
  }

  uint64_t in_place = 0;
};

uint64_t Seed() {
  const char* const given = std::getenv("VERBENA_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10)
                          : std::random_device()();
}

// Fields in protobuf's format, by chance.
class RandomFields {
 public:
  explicit RandomFields(uint64_t seed) : random_(seed) {}

  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }

  std::string Message(int depth) {
    std::string bytes;
    for (size_t i = Below(7); i > 0; --i) AddField(depth, bytes);
    return bytes;
  }

  // Something is changed, or missing, or added.
  void Break(std::string& bytes) {
    if (bytes.empty()) return;
    const size_t at = Below(bytes.size());
    switch (Below(4)) {
      case 0:
        bytes[at] = static_cast<char>(Below(256));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
        break;
      case 2:
        bytes.erase(at, 1 + Below(3));
        break;
      default:
        bytes.insert(at, 1 + Below(3), static_cast<char>(Below(256)));
    }
  }

 private:
  void AddVarint(uint64_t value, std::string& bytes) {
    while (value >= 0x80) {
      bytes += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    // Now and then longer than it need be.
    if (Below(40) == 0) {
      bytes += static_cast<char>(value | 0x80);
      for (size_t i = Below(9); i > 0; --i) bytes += '\x80';
      value = 0;
    }
    bytes += static_cast<char>(value);
  }

  std::string Text(size_t size) {
    std::string text(size, 'x');
    for (char& each : text) each = static_cast<char>('a' + Below(26));
    // No UTF-8.
    if (size > 0 && Below(15) == 0) text[Below(size)] = '\xff';
    return text;
  }

  void AddField(int depth, std::string& bytes) {
    const auto number = static_cast<uint32_t>(1 + Below(17));
    // A message's, a string's, or any.
    const uint32_t type = Below(10) < 8 ? 2 : static_cast<uint32_t>(Below(6));
    AddVarint(number << 3 | type, bytes);
    switch (type) {
      case 0:
        return AddVarint(Below(SIZE_MAX), bytes);
      case 1:
        bytes.append(8, 'w');
        return;
      case 2: {
        const bool is_message =
            number == 5 || number == 6 || number == 8 || number == 10;
        const std::string content = is_message && depth < 12
                                        ? Message(depth + 1)
                                        : Text(Below(Below(2) == 0 ? 8 : 300));
        AddVarint(content.size(), bytes);
        bytes += content;
        return;
      }
      case 3:
        bytes += Message(depth + 1);
        AddVarint(number << 3 | 4, bytes);
        return;
      case 5:
        bytes.append(4, 'n');
        return;
      default:
        return;
    }
  }

  std::mt19937_64 random_;
};

template <class Message>
void CompareWithProtobuf() {
  const uint64_t seed = Seed();
  SCOPED_TRACE("VERBENA_SEED=" + std::to_string(seed));
  RandomFields random(seed);
  Message parsed;
  int accepted = 0;
  uint64_t in_place = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = random.Message(0);
    if (random.Below(3) == 0) random.Break(bytes);
    if (bytes.empty()) continue;
    Message expected;
    const bool is_one = expected.ParseFromString(bytes);
    const size_t piece = 1 + random.Below(random.Below(2) == 0 ? 20 : 400);
    const size_t fewest = 1 + random.Below(30);
    PiecesAndStrings arriving(bytes, piece, bytes.size());
    ArrivingParser parser(arriving, fewest);
    ASSERT_EQ(parser.Parse(parsed), is_one)
        << i << ", pieces of " << piece << ", in place from " << fewest;
    EXPECT_FALSE(parser.is_cut_off());
    in_place += arriving.in_place;
    if (!is_one) continue;
    ++accepted;
    ASSERT_EQ(BytesInOrder(parsed), BytesInOrder(expected)) << i;
  }
  EXPECT_GT(accepted, 1'000);
  EXPECT_GT(in_place, 10'000u);
}

TEST(ArrivingParserTest, AnyFieldsAreWhatProtobufMakesOfThem) {
  CompareWithProtobuf<Strings>();
}

TEST(ArrivingParserTest, AnyFieldsWithPresence) {
  CompareWithProtobuf<OldStrings>();
}

TEST(ArrivingParserTest, OneThatIsCutOffIsNone) {
  const uint64_t seed = Seed();
  SCOPED_TRACE("VERBENA_SEED=" + std::to_string(seed));
  RandomFields random(seed);
  for (int i = 0; i < 2'000; ++i) {
    const std::string bytes = random.Message(0);
    Strings parsed;
    if (bytes.empty() || !parsed.ParseFromString(bytes)) continue;
    const size_t came = random.Below(bytes.size());
    PiecesAndStrings arriving(std::string_view(bytes).substr(0, came),
                              1 + random.Below(100), bytes.size());
    ArrivingParser parser(arriving, 1 + random.Below(30));
    EXPECT_FALSE(parser.Parse(parsed)) << i;
    EXPECT_TRUE(parser.is_cut_off()) << i;
  }
}

constexpr size_t kLong = 1 << 20;
constexpr size_t kPiece = 1 << 10;

Strings LongStrings() {
  Strings message;
  message.set_text(std::string(kLong, 't'));
  message.set_data(std::string(kLong + 1, 'd'));
  message.add_chunks(std::string(kLong + 2, 'c'));
  message.add_names(std::string(kLong + 3, 'n'));
  message.mutable_inner()->set_data(std::string(kLong + 4, 'i'));
  message.add_children()->mutable_nested()->set_maybe(
      std::string(kLong + 5, 'm'));
  message.set_blob(std::string(kLong + 6, 'b'));
  return message;
}

// Parses it, which must be right; returns how much of it was read in place.
uint64_t ParseInPieces(const std::string& bytes,
                       google::protobuf::Message& parsed,
                       size_t piece = kPiece) {
  PiecesAndStrings arriving(bytes, piece, bytes.size());
  ArrivingParser parser(arriving);
  EXPECT_TRUE(parser.Parse(parsed));
  EXPECT_TRUE(parsed.SerializeAsString() == bytes);
  return arriving.in_place;
}

TEST(ArrivingParserTest, AllLongStringsAreReadInPlace) {
  Strings parsed;
  EXPECT_GT(ParseInPieces(LongStrings().SerializeAsString(), parsed),
            7 * (kLong - kPiece));
}

TEST(ArrivingParserTest, ShortOnesAreCopied) {
  Strings message;
  for (int i = 0; i < 100; ++i) message.add_chunks(std::string(100'000, 'c'));
  Strings parsed;
  EXPECT_EQ(ParseInPieces(message.SerializeAsString(), parsed), 0u);
}

TEST(ArrivingParserTest, StringsKeepTheirMemory) {
  const std::string bytes = LongStrings().SerializeAsString();
  Strings parsed;
  ParseInPieces(bytes, parsed);
  const char* const text = parsed.text().data();
  const char* const chunk = parsed.chunks(0).data();
  EXPECT_GT(ParseInPieces(bytes, parsed), 0u);
  EXPECT_EQ(parsed.text().data(), text);
  EXPECT_EQ(parsed.chunks(0).data(), chunk);
}

// A string of a length that its memory nearly has room for.
TEST(ArrivingParserTest, StringsThatGrow) {
  Strings parsed;
  for (const size_t size : {kLong, kLong + kLong / 2, 2 * kLong, kLong}) {
    Strings message;
    message.set_data(std::string(size, 'd'));
    EXPECT_GT(ParseInPieces(message.SerializeAsString(), parsed), 0u);
  }
}

TEST(ArrivingParserTest, DefaultsStayWhatTheyAre) {
  OldStrings message;
  message.set_text(std::string(kLong, 't'));
  message.set_data("there");
  OldStrings parsed;
  EXPECT_GT(ParseInPieces(message.SerializeAsString(), parsed), 0u);
  EXPECT_EQ(OldStrings().text(), "none");
  parsed.clear_text();
  EXPECT_EQ(parsed.text(), "none");
}

TEST(ArrivingParserTest, MessagesOnAnArenaAreCopied) {
  google::protobuf::Arena arena;
  auto* const parsed = google::protobuf::Arena::CreateMessage<Strings>(&arena);
  EXPECT_EQ(ParseInPieces(LongStrings().SerializeAsString(), *parsed), 0u);
}

// The same is true where the head of a field lies in two pieces.
TEST(ArrivingParserTest, HeadsInTwoPieces) {
  Strings message;
  message.set_text(std::string(50, 't'));
  message.set_data(std::string(kLong, 'd'));
  const std::string bytes = message.SerializeAsString();
  for (size_t piece = 40; piece < 70; ++piece) {
    Strings parsed;
    EXPECT_GT(ParseInPieces(bytes, parsed, piece), kLong - 100) << piece;
  }
}

}  // namespace
}  // namespace rpc::internal
