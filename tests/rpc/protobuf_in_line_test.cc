// Goal: what rpc/ parses and serializes by protobuf_in_line.h is what protobuf
// itself would have made of it: limits, required and unknown fields, texts that
// are not UTF-8, and bytes that are no message. Method: real messages of both
// syntaxes, whose bytes are cut, changed and added to at random, go through
// both, and through messages that were used before.
#include "rpc/internal/protobuf_in_line.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/rpc/bytes_in_order.h"
#include "tests/rpc/echo.pb.h"

namespace rpc::internal {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::Message;
using google::protobuf::Struct;
using google::protobuf::UninterpretedOption;
using testing::BytesInOrder;
using testing::SayRequest;

// One for each thing that parsing has to look at: texts and packed numbers;
// maps, and messages in messages; required fields.
std::vector<std::unique_ptr<Message>> Examples() {
  std::vector<std::unique_ptr<Message>> examples;
  auto request = std::make_unique<SayRequest>();
  request->set_text("a text, which has to be UTF-8: \xc3\xa4");
  request->set_payload(std::string(100, '\xff'));
  for (int i = 0; i < 20; ++i) request->add_numbers(int64_t{1} << (3 * i));
  examples.push_back(std::move(request));
  auto small = std::make_unique<SayRequest>();
  small->set_sleep_us(300);
  examples.push_back(std::move(small));
  auto map = std::make_unique<Struct>();
  for (const char* key : {"one", "two", "three"}) {
    (*map->mutable_fields())[key]
        .mutable_list_value()
        ->add_values()
        ->set_string_value(key);
  }
  examples.push_back(std::move(map));
  auto option = std::make_unique<UninterpretedOption>();
  option->set_identifier_value("value");
  for (int i = 0; i < 3; ++i) {
    UninterpretedOption::NamePart* const part = option->add_name();
    part->set_name_part("part");
    part->set_is_extension(i == 1);
  }
  examples.push_back(std::move(option));
  return examples;
}

bool ParseByProtobuf(std::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Both make the same of it.
void ExpectSame(std::string_view bytes, const Message& type, Message* used) {
  const std::unique_ptr<Message> expected(type.New());
  const bool parsed = ParseByProtobuf(bytes, expected.get());
  EXPECT_EQ(ParseInLine(bytes, used), parsed);
  EXPECT_EQ(BytesInOrder(*used), BytesInOrder(*expected));
}

std::string Mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&random](size_t limit) {
    return static_cast<size_t>(random() % limit);
  };
  const size_t at = below(bytes.size());
  switch (below(4)) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2:
      bytes.insert(at, 1 + below(20), static_cast<char>(random()));
      break;
    default:
      for (size_t i = 1 + below(4); i > 0; --i) {
        bytes.push_back(static_cast<char>(random()));
      }
  }
  return bytes;
}

class ProtobufInLineTest : public ::testing::Test {
 protected:
  // Of required fields that are missing.
  google::protobuf::LogSilencer silencer_;
};

TEST_F(ProtobufInLineTest, ParsesWhatProtobufParses) {
  std::mt19937 random(1);
  for (const auto& example : Examples()) {
    const std::string bytes = example->SerializePartialAsString();
    const std::unique_ptr<Message> used(example->New());
    ASSERT_TRUE(ParseInLine(bytes, used.get()));
    for (int i = 0; i < 5000; ++i) {
      ExpectSame(Mutated(bytes, random), *example, used.get());
      if (HasFailure()) return;
    }
    ExpectSame("", *example, used.get());
  }
}

TEST_F(ProtobufInLineTest, WantsRequiredFields) {
  UninterpretedOption option;
  option.add_name()->set_name_part("and not whether it is an extension");
  UninterpretedOption parsed;
  EXPECT_FALSE(ParseInLine(option.SerializePartialAsString(), &parsed));
}

TEST_F(ProtobufInLineTest, KeepsUnknownFields) {
  SayRequest request;
  request.set_echo_metadata(true);
  google::protobuf::Empty empty;
  ASSERT_TRUE(ParseInLine(request.SerializeAsString(), &empty));
  EXPECT_EQ(empty.SerializeAsString(), request.SerializeAsString());
}

TEST_F(ProtobufInLineTest, HoldsMessagesToTheLimitOfDepth) {
  const int limit =
      google::protobuf::io::CodedInputStream::GetDefaultRecursionLimit();
  DescriptorProto message;
  for (int depth = 0; depth < limit + 2; ++depth) {
    DescriptorProto parsed;
    EXPECT_EQ(ParseInLine(message.SerializeAsString(), &parsed),
              depth <= limit);
    DescriptorProto outer;
    *outer.add_nested_type() = message;
    message = outer;
  }
}

TEST_F(ProtobufInLineTest, SerializesAsProtobuf) {
  for (const auto& example : Examples()) {
    const size_t size = example->ByteSizeLong();
    std::string bytes(size, '\0');
    auto* const begin = reinterpret_cast<uint8_t*>(bytes.data());
    EXPECT_EQ(SerializeInLine(*example, size, begin), begin + size);
    const std::unique_ptr<Message> parsed(example->New());
    ASSERT_TRUE(ParseByProtobuf(bytes, parsed.get()));
    EXPECT_EQ(BytesInOrder(*parsed), BytesInOrder(*example));
  }
}

// One that grew since it was asked for its size.
TEST_F(ProtobufInLineTest, WritesNoFurtherThanTheSlop) {
  for (size_t text = 0; text < 40; ++text) {
    SayRequest request;
    request.set_text(std::string(text, 't'));
    const size_t size = request.ByteSizeLong();
    request.set_text(std::string(text + 1, 't'));
    request.set_payload(std::string(1000, 'p'));
    for (int64_t i = 0; i < 10; ++i) request.add_numbers(i);
    request.set_status_message(std::string(1000, 's'));
    request.set_sleep_us(-1);
    request.set_response_payload_bytes(-1);
    constexpr uint8_t kUntouched = 0xa5;
    std::vector<uint8_t> memory(size + kSlopBytes + 4096, kUntouched);
    EXPECT_NE(SerializeInLine(request, size, memory.data()),
              memory.data() + size);
    for (size_t i = size + kSlopBytes; i < memory.size(); ++i) {
      ASSERT_EQ(memory[i], kUntouched) << text << ", " << i - size;
    }
  }
}

}  // namespace
}  // namespace rpc::internal
