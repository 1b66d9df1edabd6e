// Goal: a message is what protobuf would have made of it, wherever its strings
// begin and end, however it comes, and whatever is wrong with it; long strings
// are read to where they belong, and keep the memory that they have. Method:
// random fields in protobuf's format, correct ones and broken ones, in pieces
// of any size, against ParseFromString. A failure prints the seed that repeats
// it: --test_env=VERBENA_SEED=N.
#include "rpc/internal/arriving_parser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "tests/rpc/old_strings.pb.h"
#include "tests/rpc/strings.pb.h"

namespace rpc::internal {
namespace {

using testing::OldStrings;
using testing::Strings;

// What comes of a message, in pieces that are gone when the next one is asked
// for; but for what is read in place.
class PiecesThatCome final : public ArrivingMessage {
 public:
  // `total`: what was promised.
  PiecesThatCome(std::string_view bytes, size_t piece, uint64_t total)
      : bytes_(bytes), piece_(piece), total_(total) {}

  uint64_t total_bytes() const override { return total_; }
  absl::Span<const std::byte> Next() override {
    current_ = std::make_unique<std::string>(bytes_.substr(0, piece_));
    bytes_.remove_prefix(current_->size());
    return {reinterpret_cast<const std::byte*>(current_->data()),
            current_->size()};
  }
  bool can_read_into() const override { return true; }
  bool ReadInto(absl::Span<std::byte> to) override {
    current_.reset();
    const size_t bytes = std::min(to.size(), bytes_.size());
    std::copy_n(reinterpret_cast<const std::byte*>(bytes_.data()), bytes,
                to.data());
    bytes_.remove_prefix(bytes);
    in_place += bytes;
    return bytes == to.size();
  }

  uint64_t in_place = 0;

 private:
  std::string_view bytes_;
  const size_t piece_;
  const uint64_t total_;
  std::unique_ptr<std::string> current_;
};

uint64_t Seed() {
  const char* const given = std::getenv("VERBENA_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10)
                          : std::random_device()();
}

// Maps have an order then.
std::string Serialized(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream target(&bytes);
  google::protobuf::io::CodedOutputStream stream(&target);
  stream.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&stream);
  stream.Trim();
  return bytes;
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
    PiecesThatCome arriving(bytes, piece, bytes.size());
    ArrivingParser parser(arriving, fewest);
    ASSERT_EQ(parser.Parse(parsed), is_one)
        << i << ", pieces of " << piece << ", in place from " << fewest;
    EXPECT_FALSE(parser.is_cut_off());
    in_place += arriving.in_place;
    if (!is_one) continue;
    ++accepted;
    ASSERT_EQ(Serialized(parsed), Serialized(expected)) << i;
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
    PiecesThatCome arriving(std::string_view(bytes).substr(0, came),
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

TEST(ArrivingParserTest, AllLongStringsAreReadInPlace) {
  const Strings message = LongStrings();
  const std::string bytes = message.SerializeAsString();
  PiecesThatCome arriving(bytes, kPiece, bytes.size());
  ArrivingParser parser(arriving);
  Strings parsed;
  ASSERT_TRUE(parser.Parse(parsed));
  EXPECT_TRUE(parsed.SerializeAsString() == bytes);
  EXPECT_GT(arriving.in_place, 7 * (kLong - kPiece));
}

TEST(ArrivingParserTest, ShortOnesAreCopied) {
  Strings message;
  for (int i = 0; i < 100; ++i) message.add_chunks(std::string(100'000, 'c'));
  const std::string bytes = message.SerializeAsString();
  PiecesThatCome arriving(bytes, kPiece, bytes.size());
  ArrivingParser parser(arriving);
  Strings parsed;
  ASSERT_TRUE(parser.Parse(parsed));
  EXPECT_TRUE(parsed.SerializeAsString() == bytes);
  EXPECT_EQ(arriving.in_place, 0u);
}

TEST(ArrivingParserTest, StringsKeepTheirMemory) {
  const std::string bytes = LongStrings().SerializeAsString();
  Strings parsed;
  const auto parse = [&] {
    PiecesThatCome arriving(bytes, kPiece, bytes.size());
    ArrivingParser parser(arriving);
    ASSERT_TRUE(parser.Parse(parsed));
  };
  parse();
  const char* const text = parsed.text().data();
  const char* const chunk = parsed.chunks(0).data();
  parse();
  EXPECT_EQ(parsed.text().data(), text);
  EXPECT_EQ(parsed.chunks(0).data(), chunk);
  EXPECT_TRUE(parsed.SerializeAsString() == bytes);
}

TEST(ArrivingParserTest, DefaultsStayWhatTheyAre) {
  OldStrings message;
  message.set_text(std::string(kLong, 't'));
  message.set_data("there");
  const std::string bytes = message.SerializeAsString();
  PiecesThatCome arriving(bytes, kPiece, bytes.size());
  ArrivingParser parser(arriving);
  OldStrings parsed;
  ASSERT_TRUE(parser.Parse(parsed));
  EXPECT_GT(arriving.in_place, 0u);
  EXPECT_EQ(OldStrings().text(), "none");
  parsed.clear_text();
  EXPECT_EQ(parsed.text(), "none");
}

TEST(ArrivingParserTest, MessagesOnAnArenaAreCopied) {
  const std::string bytes = LongStrings().SerializeAsString();
  PiecesThatCome arriving(bytes, kPiece, bytes.size());
  ArrivingParser parser(arriving);
  google::protobuf::Arena arena;
  auto* const parsed = google::protobuf::Arena::CreateMessage<Strings>(&arena);
  ASSERT_TRUE(parser.Parse(*parsed));
  EXPECT_TRUE(parsed->SerializeAsString() == bytes);
  EXPECT_EQ(arriving.in_place, 0u);
}

// The same is true where the head of a field lies in two pieces.
TEST(ArrivingParserTest, HeadsInTwoPieces) {
  Strings message;
  message.set_text(std::string(50, 't'));
  message.set_data(std::string(kLong, 'd'));
  const std::string bytes = message.SerializeAsString();
  for (size_t piece = 40; piece < 70; ++piece) {
    PiecesThatCome arriving(bytes, piece, bytes.size());
    ArrivingParser parser(arriving);
    Strings parsed;
    ASSERT_TRUE(parser.Parse(parsed));
    EXPECT_TRUE(parsed.data() == message.data());
    EXPECT_GT(arriving.in_place, kLong - 100) << piece;
  }
}

}  // namespace
}  // namespace rpc::internal
