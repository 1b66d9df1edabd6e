// The other side of the end-to-end tests, as a process that can be killed.
//
//   peer serve ADDRESS [NAME=VALUE]...   a server; arguments as in
//                                        rpc/channel_arguments.h
//   peer upload ADDRESS BYTES            endless calls with attachments
//   peer download ADDRESS BYTES
//
// Prints one line: a server its address, or why it has none; a client "started"
// when its first call is about to go out.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "tests/e2e/endpoints.h"

namespace e2e {
namespace {

void Say(const std::string& line) {
  absl::PrintF("%s\n", line);
  std::fflush(stdout);
}

int Serve(const std::string& address, const std::vector<std::string>& words) {
  Arguments arguments;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos ||
        !absl::SimpleAtoi(word.substr(equals + 1),
                          &arguments[word.substr(0, equals)])) {
      Say("not an argument: " + word);
      return 2;
    }
  }
  Server server(arguments, address);
  Say(server.ok() ? server.address() : server.status().ToString());
  if (!server.ok()) return 1;
  server.server().Wait();  // until the process is killed
  return 0;
}

int Load(const std::string& address, uint64_t bytes, bool upload) {
  const Client client(address);
  Say("started");
  while (true) {
    const rpc::Status status =
        upload ? client.Consume(0, bytes) : client.Produce(0, bytes);
    if (!status.ok()) return 1;
  }
}

int Main(const std::vector<std::string>& words) {
  if (words.size() >= 2 && words[0] == "serve") {
    return Serve(words[1], {words.begin() + 2, words.end()});
  }
  uint64_t bytes = 0;
  if (words.size() == 3 && (words[0] == "upload" || words[0] == "download") &&
      absl::SimpleAtoi(words[2], &bytes)) {
    return Load(words[1], bytes, words[0] == "upload");
  }
  Say("see the comment in tests/e2e/peer.cc");
  return 2;
}

}  // namespace
}  // namespace e2e

int main(int argc, char** argv) { return e2e::Main({argv + 1, argv + argc}); }
