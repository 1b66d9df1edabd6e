// Goal: messages are there as soon as they are complete, and a reader that
// waits can be called off. Method: pipes.
#include "tools/rpc_cli/message_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rpc_cli {
namespace {

using ::testing::HasSubstr;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    CloseWriter();
    ::close(ends_[0]);
  }

  int reader() const { return ends_[0]; }
  void Write(const std::string& text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void CloseWriter() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

// "": none; "error: ..." for an error.
std::string Next(MessageInput& input) {
  const absl::StatusOr<std::optional<std::string>> json = input.Next();
  if (!json.ok()) return "error: " + std::string(json.status().message());
  return json->value_or("");
}

TEST(MessageInputTest, TextIsAllThereAtOnce) {
  MessageInput input("{} 2");
  EXPECT_EQ(Next(input), "{}");
  EXPECT_EQ(Next(input), "2");
  EXPECT_EQ(Next(input), "");
  EXPECT_EQ(Next(input), "");
  EXPECT_EQ(input.count(), 2);
}

TEST(MessageInputTest, AMessageIsThereBeforeTheInputEnds) {
  Pipe pipe;
  MessageInput input(pipe.reader());
  pipe.Write("{\"a\": 1} {");
  EXPECT_EQ(Next(input), "{\"a\": 1}");
  pipe.Write("} 3");
  EXPECT_EQ(Next(input), "{}");
  pipe.CloseWriter();
  EXPECT_EQ(Next(input), "3");
  EXPECT_EQ(Next(input), "");
}

TEST(MessageInputTest, AnEndWithinAMessageIsAnErrorThatCounts) {
  Pipe pipe;
  MessageInput input(pipe.reader());
  pipe.Write("{} {");
  pipe.CloseWriter();
  EXPECT_EQ(Next(input), "{}");
  EXPECT_THAT(Next(input), HasSubstr("error: the input ends within message 2"));
}

TEST(MessageInputTest, WhatCannotBeReadIsAnError) {
  Pipe pipe;
  MessageInput closed(-1);
  closed.Interrupt();
  EXPECT_EQ(Next(closed), "");
  const int directory = ::open("/", O_RDONLY | O_CLOEXEC);
  MessageInput input(directory);
  EXPECT_THAT(Next(input), HasSubstr("error: the input cannot be read"));
  ::close(directory);
}

TEST(MessageInputTest, AReaderThatWaitsIsCalledOff) {
  Pipe pipe;
  MessageInput input(pipe.reader());
  std::thread reader([&] { EXPECT_EQ(Next(input), ""); });
  input.Interrupt();
  reader.join();
  pipe.Write("{}");
  EXPECT_EQ(Next(input), "");
}

}  // namespace
}  // namespace rpc_cli
