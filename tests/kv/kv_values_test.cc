// Goal: every command on keys does what its help says, for values of every size
// and keys of every kind. Method: a real server and real clients, as processes,
// on the software device; what is looked at is what a user sees: output, files,
// exit status.
#include <signal.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/kv/kv_processes.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string RandomBytes(size_t size, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  bytes.reserve(size + sizeof(uint64_t));
  while (bytes.size() < size) {
    const uint64_t word = random();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  bytes.resize(size);
  return bytes;
}

// One server for the tests that need no other.
class KvValuesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new KvServer; }
  static void TearDownTestSuite() { delete server_; }

  // A client that is expected to succeed; returns what it wrote.
  static std::string Ok(const Words& words, std::string_view in = {}) {
    ProcessResult result = server_->Kv(words, in);
    EXPECT_EQ(result.exit_status, 0) << result.err;
    return std::move(result.out);
  }

  static KvServer* server_;
};

KvServer* KvValuesTest::server_ = nullptr;

TEST_F(KvValuesTest, PutThenGet) {
  EXPECT_THAT(Ok({"put", "greeting", "hello"}), StartsWith("version "));
  EXPECT_EQ(Ok({"get", "greeting"}), "hello");
}

// Around every border: a ring line's payload, the inline limit, receive
// buffers, what is kept in place, and rendezvous.
TEST_F(KvValuesTest, ValuesOfEverySizeComeBackWhole) {
  TempTree temp;
  uint32_t seed = 1;
  for (const size_t size :
       {0u,     1u,       55u,      56u,        57u,    511u,   512u,
        513u,   1023u,    1024u,    1025u,      4095u,  4096u,  4097u,
        8191u,  8192u,    8193u,    16384u,     16385u, 65535u, 65536u,
        65537u, 1048576u, 1048577u, 40'000'000u}) {
    const std::string value = RandomBytes(size, seed++);
    const std::string key = absl::StrCat("size/", size);
    temp.Write("in", value);
    Ok({"put", key, "--file", temp.PathOf("in")});
    Ok({"get", key, "--output", temp.PathOf("out")});
    EXPECT_TRUE(temp.Read("out") == value) << size;
    EXPECT_TRUE(Ok({"get", key}) == value) << size;
  }
}

TEST_F(KvValuesTest, PutReadsStdin) {
  for (const size_t size : {0u, 5u, 65536u, 65537u, 3'000'000u}) {
    const std::string value = RandomBytes(size, 7);
    Ok({"put", "stdin"}, value);
    EXPECT_TRUE(Ok({"get", "stdin"}) == value) << size;
  }
}

TEST_F(KvValuesTest, AnEmptyArgumentIsAnEmptyValue) {
  Ok({"put", "empty", ""}, "not this");
  EXPECT_EQ(Ok({"get", "empty"}), "");
}

TEST_F(KvValuesTest, KeysOfAnyBytes) {
  for (const std::string& key :
       {std::string("a b\nc"), std::string("gr\u00fc\u00df"),
        std::string("\xff\xfe"), std::string("-dash"),
        std::string(4096, 'k')}) {
    Ok({"--", "put", key, key});
    EXPECT_EQ(Ok({"--", "get", key}), key);
    Ok({"--", "delete", key});
  }
}

TEST_F(KvValuesTest, MissingKeysAreExitStatus2) {
  const ProcessResult get = server_->Kv({"get", "nowhere"});
  EXPECT_EQ(get.exit_status, 2);
  EXPECT_THAT(get.err, AllOf(HasSubstr("nowhere: no such key"),
                             HasSubstr(server_->address())));
  EXPECT_EQ(server_->Kv({"delete", "nowhere"}).exit_status, 2);
}

TEST_F(KvValuesTest, DeleteDeletes) {
  Ok({"put", "doomed", "x"});
  Ok({"delete", "doomed"});
  EXPECT_EQ(server_->Kv({"get", "doomed"}).exit_status, 2);
}

TEST_F(KvValuesTest, PutIfVersionLosesRacesPolitely) {
  EXPECT_EQ(server_->Kv({"put", "cas", "x", "--if_version=5"}).exit_status, 2);
  const std::string first = Ok({"put", "cas", "1", "--if_version=0"});
  EXPECT_EQ(server_->Kv({"put", "cas", "2", "--if_version=0"}).exit_status, 2);
  const std::vector<std::string> words =
      absl::StrSplit(first, absl::ByAnyChar(" \n"));
  ASSERT_EQ(words[0], "version");
  Ok({"put", "cas", "3", "--if_version", words[1]});
  const ProcessResult late =
      server_->Kv({"put", "cas", "4", "--if_version", words[1]});
  EXPECT_EQ(late.exit_status, 2);
  EXPECT_THAT(late.err, HasSubstr("has version"));
  EXPECT_EQ(Ok({"get", "cas"}), "3");
}

TEST_F(KvValuesTest, ListsKeysWithAPrefixInOrderAndReadably) {
  for (const char* key : {"l/b", "l/a", "l/c\nd", "m"}) Ok({"put", key, "12"});
  EXPECT_EQ(Ok({"list", "l/"}), "l/a\nl/b\nl/c\\nd\n");
  EXPECT_EQ(Ok({"list", "l/", "--page_size=1"}), "l/a\nl/b\nl/c\\nd\n");
  EXPECT_EQ(Ok({"list", "zzz"}), "");
  EXPECT_THAT(Ok({"list", "l/a", "--long"}), HasSubstr(" 2  "));
  const auto line = nlohmann::json::parse(Ok({"list", "l/a", "--json"}));
  EXPECT_EQ(line["key"], "l/a");
  EXPECT_EQ(line["bytes"], 2);
}

TEST_F(KvValuesTest, StatsCount) {
  const auto before = nlohmann::json::parse(Ok({"stats", "--json"}));
  Ok({"put", "stats", "12345"});
  Ok({"get", "stats"});
  server_->Kv({"get", "nowhere"});
  const auto after = nlohmann::json::parse(Ok({"stats", "--json"}));
  EXPECT_EQ(after["puts"], before["puts"].get<int>() + 1);
  EXPECT_EQ(after["gets"], before["gets"].get<int>() + 2);
  EXPECT_EQ(after["hits"], before["hits"].get<int>() + 1);
  EXPECT_EQ(after["keys"], before["keys"].get<int>() + 1);
  EXPECT_EQ(after["device"], "soft0");
  EXPECT_THAT(Ok({"stats"}), HasSubstr("soft0"));
}

TEST_F(KvValuesTest, MessagesAreCountedByTheWayTheyTook) {
  const auto before = nlohmann::json::parse(Ok({"stats", "--json"}));
  TempTree temp;
  temp.Write("in", RandomBytes(5'000'000, 1));
  Ok({"put", "large", "--file", temp.PathOf("in")});
  Ok({"get", "large", "--output", temp.PathOf("out")});
  const auto after = nlohmann::json::parse(Ok({"stats", "--json"}));
  EXPECT_GE(after["messages_rendezvous"],
            before["messages_rendezvous"].get<int>() + 2);
  EXPECT_GT(after["messages_eager"], before["messages_eager"].get<int>());
}

TEST_F(KvValuesTest, RefusesAnOverlongKeyAndSaysTheLimit) {
  const ProcessResult result =
      server_->Kv({"put", std::string(4097, 'k'), "x"});
  EXPECT_EQ(result.exit_status, 4);
  EXPECT_THAT(result.err, HasSubstr("4096"));
  EXPECT_EQ(server_->Kv({"put", "", "x"}).exit_status, 4);
}

TEST_F(KvValuesTest, NamesFilesThatItCannotReadOrWrite) {
  TempTree temp;
  const ProcessResult put =
      server_->Kv({"put", "k", "--file", temp.PathOf("nowhere")});
  EXPECT_EQ(put.exit_status, 5);
  EXPECT_THAT(put.err, HasSubstr(temp.PathOf("nowhere")));

  Ok({"put", "k", "v"});
  const std::string out = temp.PathOf("no/such/directory/out");
  const ProcessResult get = server_->Kv({"get", "k", "--output", out});
  EXPECT_EQ(get.exit_status, 5);
  EXPECT_THAT(get.err, HasSubstr(out));
  // Neither root nor anybody else may make files here.
  EXPECT_EQ(server_->Kv({"get", "k", "--output", "/proc/out"}).exit_status, 5);
}

TEST_F(KvValuesTest, ExplainsItselfAndItsMistakes) {
  const ProcessResult help = RunProcess({"examples/kv/kv", "--help"});
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("verify DIR"), HasSubstr("--address="),
                              HasSubstr("Exit status")));
  EXPECT_THAT(help.out, ::testing::Not(HasSubstr("--flagfile")));
  EXPECT_THAT(RunProcess({"examples/kv/kv", "help", "load"}).out,
              HasSubstr("Symbolic"));
  EXPECT_EQ(RunProcess({"examples/kv/kv_server", "--help"}).exit_status, 0);

  EXPECT_EQ(RunProcess({"examples/kv/kv"}).exit_status, 1);
  EXPECT_EQ(server_->Kv({"gett", "k"}).exit_status, 1);
  EXPECT_EQ(server_->Kv({"get"}).exit_status, 1);
  EXPECT_EQ(server_->Kv({"get", "a", "b"}).exit_status, 1);
  EXPECT_EQ(server_->Kv({"get", "a", "--nonsense"}).exit_status, 1);
  EXPECT_EQ(server_->Kv({"put", "a", "b", "--file", "c"}).exit_status, 1);
  // A flag of another command.
  const ProcessResult get = server_->Kv({"get", "a", "--file", "c"});
  EXPECT_EQ(get.exit_status, 1);
  EXPECT_THAT(get.err, HasSubstr("--file"));
  EXPECT_EQ(server_->Kv({"get", "a", "--timeout_seconds=0"}).exit_status, 1);
  EXPECT_EQ(RunProcess({"examples/kv/kv_server", "word"}).exit_status, 1);
  EXPECT_EQ(RunProcess({"examples/kv/kv_server", "--shards=0"}).exit_status, 1);
}

}  // namespace
}  // namespace kv
