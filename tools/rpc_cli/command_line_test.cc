// Goal: a command line says what was meant, or what is wrong with it.
#include "tools/rpc_cli/command_line.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/channel_arguments.h"

namespace rpc_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Command = CommandLine::Command;

absl::StatusOr<CommandLine> Parse(std::vector<std::string> words) {
  words.insert(words.begin(), "rpc_cli");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return ParseCommandLine(static_cast<int>(words.size()), argv.data());
}

std::string ErrorOf(const std::vector<std::string>& words) {
  const absl::Status status = Parse(words).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
      << absl::StrJoin(words, " ");
  return std::string(status.message());
}

TEST(CommandLineTest, CommandsAndWhatTheyAreAbout) {
  const auto list = Parse({"list", "host:1"});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->command, Command::kList);
  EXPECT_EQ(list->address, "host:1");
  EXPECT_EQ(list->name, "");
  EXPECT_EQ(list->data, std::nullopt);
  EXPECT_EQ(list->max_time, std::nullopt);

  const auto describe = Parse({"describe", "host:1", "a.B"});
  ASSERT_TRUE(describe.ok()) << describe.status();
  EXPECT_EQ(describe->command, Command::kDescribe);
  EXPECT_EQ(describe->name, "a.B");
}

TEST(CommandLineTest, FlagsMayBeAnywhereWithOneDashOrTwo) {
  const auto line =
      Parse({"-v", "call", "--H", "a: 1", "host:1", "-d", "-5", "a.B/C",
             "-max-time=1.5", "-H", "b: 2", "--compact", "-emit-defaults"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command, Command::kCall);
  EXPECT_EQ(line->address, "host:1");
  EXPECT_EQ(line->name, "a.B/C");
  EXPECT_EQ(line->data, "-5");
  EXPECT_EQ(line->max_time, absl::Milliseconds(1500));
  EXPECT_THAT(line->metadata, ElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_TRUE(line->verbose);
  EXPECT_TRUE(line->json.compact);
  EXPECT_TRUE(line->json.emit_defaults);
}

TEST(CommandLineTest, ProtoFilesAndImportPaths) {
  const auto line = Parse({"list", "host:1", "-proto", "a.proto", "-proto",
                           "b.proto", "-import-path", "x"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->proto_files, ElementsAre("a.proto", "b.proto"));
  EXPECT_THAT(line->import_paths, ElementsAre("x"));
}

TEST(CommandLineTest, ChannelArgumentsAreNumbersOrText) {
  const auto line =
      Parse({"list", "host:1", "-channel-arg", "verbena.device=soft",
             "-channel-arg", "verbena.pollers=2"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(rpc::ParseArguments(line->channel_arguments).ok());
}

TEST(CommandLineTest, HelpIsAskedForInManyWays) {
  for (const char* word : {"-h", "-help", "--help", "help"}) {
    const auto line = Parse({word});
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->command, Command::kHelp);
  }
  EXPECT_EQ(Parse({"call", "-help"})->command, Command::kHelp);
}

TEST(CommandLineTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(ErrorOf({}), "no command");
  EXPECT_THAT(ErrorOf({"lsit", "host:1"}), HasSubstr("'lsit'"));
  EXPECT_THAT(ErrorOf({"list"}), HasSubstr("ADDRESS"));
  EXPECT_THAT(ErrorOf({"call", "host:1"}), HasSubstr("SERVICE/METHOD"));
  EXPECT_THAT(ErrorOf({"list", "host:1", "a", "b"}), HasSubstr("'b'"));
  EXPECT_EQ(ErrorOf({"list", "host:1", "-nix"}), "unknown flag -nix");
  EXPECT_EQ(ErrorOf({"call", "host:1", "a/b", "-d"}), "-d needs a value");
  EXPECT_THAT(ErrorOf({"list", "host:1", "-d", "{}"}), HasSubstr("-d"));
  EXPECT_THAT(ErrorOf({"list", "host:1", "-import-path", "x"}),
              HasSubstr("-proto FILE"));
  EXPECT_THAT(ErrorOf({"list", "host:1", "-channel-arg", "x"}),
              HasSubstr("NAME=VALUE"));
  EXPECT_THAT(ErrorOf({"list", "host:1", "-H", "x"}), HasSubstr("key: value"));
  for (const char* time : {"0", "-1", "soon", "nan", ""}) {
    EXPECT_THAT(ErrorOf({"list", "host:1", "-max-time", time}),
                HasSubstr("seconds"));
  }
}

}  // namespace
}  // namespace rpc_cli
