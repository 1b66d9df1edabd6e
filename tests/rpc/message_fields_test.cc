// Goal: messages that generated code writes and parses field by field are what
// protobuf itself makes of them: every type, presence, limits, what is not
// canonical, and bytes that are no message. Method: messages whose fields are
// set at random, and their bytes, cut, changed and added to at random, go
// through both. The functions are those that the generated service registered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "rpc/internal/message_functions.h"
#include "rpc/service.h"
#include "rpc/test/service_test_peer.h"
#include "tests/rpc/bytes_in_order.h"
#include "tests/rpc/fields.pb.h"
#include "tests/rpc/fields.rpc.pb.h"
#include "tests/rpc/old_fields.pb.h"

namespace rpc::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using internal::kProtobufsOwn;
using internal::kSlopBytes;
using internal::MessageFunctions;
using Random = std::mt19937_64;

struct Type {
  const Message& prototype;
  MessageFunctions functions;
};

// The messages of a service's methods.
std::vector<Type> TypesOf(Service& service,
                          const google::protobuf::ServiceDescriptor& about) {
  google::protobuf::MessageFactory& factory =
      *google::protobuf::MessageFactory::generated_factory();
  std::vector<Type> types;
  for (int i = 0; i < about.method_count(); ++i) {
    const auto& messages = ServiceTestPeer::Messages(service, i);
    types.push_back({*factory.GetPrototype(about.method(i)->input_type()),
                     messages.request});
    types.push_back({*factory.GetPrototype(about.method(i)->output_type()),
                     messages.response});
  }
  return types;
}

const google::protobuf::FileDescriptor& File() {
  return *FieldNothing::descriptor()->file();
}

std::vector<Type> FieldTypes() {
  Fields::Service service;
  return TypesOf(service, *File().FindServiceByName("Fields"));
}

size_t Below(size_t limit, Random& random) {
  return static_cast<size_t>(random() % limit);
}

// Of any width.
uint64_t AnyNumber(Random& random) { return random() >> Below(64, random); }

template <class Real>
Real AnyReal(Random& random) {
  const Real reals[] = {Real{0},
                        -Real{0},
                        Real{1.5},
                        std::numeric_limits<Real>::infinity(),
                        std::numeric_limits<Real>::quiet_NaN(),
                        std::numeric_limits<Real>::denorm_min()};
  return reals[Below(std::size(reals), random)];
}

// Some are long: those are copied in a way of their own.
std::string AnyText(Random& random) {
  std::string text;
  const size_t limit = Below(50, random) == 0 ? 5000 : 200;
  for (size_t left = AnyNumber(random) % limit; left > 0; --left) {
    text += Below(10, random) == 0 ? "\xc3\xa4" : "t";
  }
  return text;
}

void SetAny(Message& message, const FieldDescriptor& field, Random& random) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field,
                                 static_cast<int32_t>(AnyNumber(random)));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field,
                                 static_cast<int64_t>(AnyNumber(random)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(&message, &field,
                                  static_cast<uint32_t>(AnyNumber(random)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, AnyNumber(random));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, &field, AnyReal<double>(random));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.SetFloat(&message, &field, AnyReal<float>(random));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, random() % 2 != 0);
    case FieldDescriptor::CPPTYPE_ENUM:  // also of numbers without a name
      return reflection.SetEnumValue(&message, &field,
                                     static_cast<int>(AnyNumber(random)));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, AnyText(random));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      FAIL() << field.full_name();
  }
}

std::unique_ptr<Message> AnyMessage(const Message& prototype, Random& random) {
  std::unique_ptr<Message> message(prototype.New());
  const google::protobuf::Descriptor& about = *message->GetDescriptor();
  for (int i = 0; i < about.field_count(); ++i) {
    if (random() % 2 != 0) SetAny(*message, *about.field(i), random);
  }
  return message;
}

// Some of protobuf's limits are behind so many bytes.
std::string Mutated(std::string bytes, Random& random) {
  const size_t at = Below(bytes.size() + 1, random);
  switch (Below(6, random)) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random());
      break;
    case 2:  // varints that are too long, or end within a bit pattern
      bytes.insert(at, 1 + Below(11, random),
                   random() % 2 != 0 ? '\x80' : '\xff');
      break;
    case 3:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] | 0x80);
      bytes.insert(std::min(at + 1, bytes.size()), Below(5, random), '\x80');
      bytes.insert(std::min(at + 1, bytes.size()), 1, '\0');
      break;
    case 4:
      bytes.insert(at, 1 + Below(4, random), static_cast<char>(random()));
      break;
    default:
      bytes.append(bytes.substr(0, at));  // fields that come again
  }
  return bytes;
}

class MessageFieldsTest : public ::testing::Test {
 protected:
  // Of texts that are not UTF-8.
  google::protobuf::LogSilencer silencer_;
};

// Both make the same of it. `used`: a message that was used before.
void ExpectSameParsed(std::string_view bytes, const Type& type, Message& used) {
  const std::unique_ptr<Message> expected(type.prototype.New());
  const bool parsed =
      expected->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  ASSERT_EQ(type.functions.parse(bytes, &used), parsed);
  if (!parsed) return;
  ASSERT_EQ(BytesInOrder(used), BytesInOrder(*expected));
}

TEST_F(MessageFieldsTest, AreOfTypesWithNumbersAndTextsOnly) {
  for (const Type& type : FieldTypes()) {
    EXPECT_NE(type.functions.parse, kProtobufsOwn.parse)
        << type.prototype.GetTypeName();
    EXPECT_NE(type.functions.write, kProtobufsOwn.write)
        << type.prototype.GetTypeName();
    EXPECT_NE(type.functions.fill, kProtobufsOwn.fill)
        << type.prototype.GetTypeName();
  }
}

TEST_F(MessageFieldsTest, AreNotOfOtherTypes) {
  OtherFields::Service others;
  const auto& about = *File().FindServiceByName("OtherFields");
  for (int i = 0; i < about.method_count(); ++i) {
    const auto& messages = ServiceTestPeer::Messages(others, i);
    for (const MessageFunctions& functions :
         {messages.request, messages.response}) {
      EXPECT_EQ(functions.parse, kProtobufsOwn.parse)
          << about.method(i)->full_name();
      EXPECT_EQ(functions.write, kProtobufsOwn.write)
          << about.method(i)->full_name();
      EXPECT_EQ(functions.fill, kProtobufsOwn.fill)
          << about.method(i)->full_name();
    }
  }
}

TEST_F(MessageFieldsTest, ParsesWhatProtobufParses) {
  Random random(1);
  for (const Type& type : FieldTypes()) {
    const std::unique_ptr<Message> used(type.prototype.New());
    for (int i = 0; i < 10000; ++i) {
      std::string bytes = BytesInOrder(*AnyMessage(type.prototype, random));
      for (size_t times = Below(3, random); times > 0; --times) {
        bytes = Mutated(bytes, random);
      }
      ExpectSameParsed(bytes, type, *used);
      if (HasFatalFailure()) FAIL() << type.prototype.GetTypeName();
    }
  }
}

// The bytes alone, with nothing around them that would be out of place.
TEST_F(MessageFieldsTest, ParsesAnyFewBytes) {
  const std::string alphabet("\0\1\2\7\x08\x0a\x0d\x10\x7f\x80\x8a\xfd\xff",
                             13);
  Random random(2);
  for (const Type& type : FieldTypes()) {
    const std::unique_ptr<Message> used(type.prototype.New());
    for (int i = 0; i < 20000; ++i) {
      std::string bytes;
      for (size_t left = Below(14, random); left > 0; --left) {
        bytes += alphabet[Below(alphabet.size(), random)];
      }
      ExpectSameParsed(bytes, type, *used);
      if (HasFatalFailure()) FAIL() << type.prototype.GetTypeName();
    }
  }
}

// In `width` bytes, if need be with more of them than it takes.
std::string Varint(uint64_t value, int width) {
  std::string bytes;
  for (int i = 1; i < width; ++i, value >>= 7) {
    bytes += static_cast<char>(value | 0x80);
  }
  return bytes + static_cast<char>(value & 0x7f);
}

// Tags, sizes and numbers that are longer than they need be, or than they may.
TEST_F(MessageFieldsTest, ParsesVarintsOfAnyWidth) {
  for (const Type& type : FieldTypes()) {
    const std::unique_ptr<Message> used(type.prototype.New());
    for (int width = 1; width < 13; ++width) {
      for (uint64_t tag = 1; tag < 0x80; ++tag) {
        for (const uint64_t value : {uint64_t{3}, ~uint64_t{0}}) {
          ExpectSameParsed(Varint(tag, width) + Varint(value, 1) + "abc", type,
                           *used);
          ExpectSameParsed(Varint(tag, 1) + Varint(value, width) + "abc", type,
                           *used);
          if (HasFatalFailure()) {
            FAIL() << type.prototype.GetTypeName() << ", tag " << tag << ", "
                   << width << " bytes";
          }
        }
      }
    }
  }
}

// With any limit: what does not fit is left alone, and its size is told.
void ExpectSameWritten(const Message& message, const Type& type,
                       size_t max_bytes) {
  constexpr char kUntouched = '\xa5';
  const std::string expected = BytesInOrder(message);
  std::string memory(max_bytes + kSlopBytes + 64, kUntouched);
  ASSERT_EQ(type.functions.write(
                message, reinterpret_cast<uint8_t*>(memory.data()), max_bytes),
            expected.size());
  if (expected.size() <= max_bytes) {
    ASSERT_EQ(memory.substr(0, expected.size()), expected);
  }
  ASSERT_EQ(memory.find_first_not_of(kUntouched, max_bytes + kSlopBytes),
            std::string::npos);
}

// The same of a size that is known, with so much room behind it: nothing is
// written beyond.
void ExpectSameFilled(const Message& message, const Type& type, size_t room) {
  constexpr char kUntouched = '\xa5';
  const std::string expected = BytesInOrder(message);
  ASSERT_EQ(message.ByteSizeLong(), expected.size());
  std::string memory(expected.size() + room + 64, kUntouched);
  auto* const target = reinterpret_cast<uint8_t*>(memory.data());
  ASSERT_TRUE(type.functions.fill(message, expected.size(), target,
                                  expected.size() + room));
  ASSERT_EQ(memory.substr(0, expected.size()), expected);
  ASSERT_EQ(memory.find_first_not_of(kUntouched, expected.size() + room),
            std::string::npos);
}

TEST_F(MessageFieldsTest, FillsWhatProtobufFills) {
  Random random(5);
  for (const Type& type : FieldTypes()) {
    for (int i = 0; i < 10000; ++i) {
      const auto message = AnyMessage(type.prototype, random);
      for (const size_t room : {size_t{0}, Below(20, random), size_t{100}}) {
        ExpectSameFilled(*message, type, room);
        if (HasFatalFailure()) FAIL() << type.prototype.GetTypeName();
      }
    }
  }
}

// As one that another thread changes after its size was told: whether there is
// room for what it has become, or not.
TEST_F(MessageFieldsTest, FillsNothingOfAnotherSize) {
  constexpr char kUntouched = '\xa5';
  Random random(6);
  for (const Type& type : FieldTypes()) {
    for (int i = 0; i < 1000; ++i) {
      const auto before = AnyMessage(type.prototype, random);
      const auto after = AnyMessage(type.prototype, random);
      const size_t size = before->ByteSizeLong();
      if (after->ByteSizeLong() == size) continue;
      for (const size_t room : {0, 30, 20000}) {
        std::string memory(size + room + kSlopBytes + 64, kUntouched);
        EXPECT_FALSE(type.functions.fill(
            *after, size, reinterpret_cast<uint8_t*>(memory.data()),
            size + room));
        EXPECT_EQ(
            memory.find_first_not_of(kUntouched, size + room + kSlopBytes),
            std::string::npos);
      }
    }
  }
}

TEST_F(MessageFieldsTest, WritesWhatProtobufWrites) {
  Random random(3);
  for (const Type& type : FieldTypes()) {
    for (int i = 0; i < 10000; ++i) {
      const auto message = AnyMessage(type.prototype, random);
      const size_t size = message->ByteSizeLong();
      for (const size_t max_bytes : {size, size + Below(40, random),
                                     Below(size + 1, random), size_t{1088}}) {
        ExpectSameWritten(*message, type, max_bytes);
        if (HasFatalFailure()) FAIL() << type.prototype.GetTypeName();
      }
    }
  }
}

TEST_F(MessageFieldsTest, KeepsUnknownFields) {
  Random random(4);
  for (const Type& type : FieldTypes()) {
    FieldTooHigh unknown;
    unknown.set_number(5);
    std::string bytes = BytesInOrder(*AnyMessage(type.prototype, random));
    bytes += unknown.SerializeAsString();
    const std::unique_ptr<Message> parsed(type.prototype.New());
    ASSERT_TRUE(type.functions.parse(bytes, parsed.get()));
    EXPECT_EQ(BytesInOrder(*parsed), bytes);
    ExpectSameWritten(*parsed, type, 10000);
    ExpectSameFilled(*parsed, type, 100);
    // A message remembers that it had some.
    parsed->Clear();
    ExpectSameWritten(*parsed, type, 10000);
    ExpectSameParsed("", type, *parsed);
  }
}

// What protobuf complains of.
class Complaints {
 public:
  Complaints() : before_(google::protobuf::SetLogHandler(&Count)) {
    count_ = 0;
  }
  ~Complaints() { google::protobuf::SetLogHandler(before_); }

  int count() const { return count_; }

 private:
  static void Count(google::protobuf::LogLevel, const char*, int,
                    const std::string&) {
    ++count_;
  }

  static inline int count_ = 0;
  google::protobuf::LogHandler* const before_;
};

TEST(MessageFieldsUtf8Test, IsLeftToProtobuf) {
  const std::vector<Type> types = FieldTypes();
  const Type& type = types[1];
  FieldTexts texts;
  texts.set_more_text("not \xff UTF-8");
  const Complaints complaints;
  const std::string bytes = BytesInOrder(texts);
  EXPECT_EQ(complaints.count(), 1);
  ExpectSameWritten(texts, type, 1000);
  EXPECT_EQ(complaints.count(), 3);  // its own BytesInOrder, and ours
  ExpectSameFilled(texts, type, 100);
  EXPECT_EQ(complaints.count(), 5);
  FieldTexts parsed;
  EXPECT_FALSE(type.functions.parse(bytes, &parsed));
  EXPECT_EQ(complaints.count(), 6);
  // Bytes may be anything.
  texts.set_more_text("text");
  texts.set_data("not \xff UTF-8");
  ASSERT_TRUE(type.functions.parse(BytesInOrder(texts), &parsed));
  EXPECT_EQ(parsed.data(), texts.data());
}

}  // namespace
}  // namespace rpc::testing
