// gRPC's interoperability cases, as its doc/interop-test-descriptions.md lists
// them, but for those that are about HTTP/2, compression, caching proxies or
// credentials. The server is interop_service.h.
//
// A case is a function that fails the running test where a call does not end as
// described. What a client of any API does is interop_runs.h; each API has a
// table of its own, and what does not depend on it, the figures first of all,
// is here.
//
//   for (const Case& c : AllCases()) c.run(stubs);
//
// Thread rule: a case may run beside others, on the same stubs.
#ifndef VERBENA_TESTS_E2E_INTEROP_CASES_H_
#define VERBENA_TESTS_E2E_INTEROP_CASES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rpc/rpc.h"
#include "tests/e2e/interop.rpc.pb.h"

namespace interop {

struct Stubs {
  explicit Stubs(const std::shared_ptr<rpc::ChannelInterface>& channel)
      : test(TestService::NewStub(channel)),
        unimplemented(UnimplementedService::NewStub(channel)) {}

  const std::unique_ptr<TestService::Stub> test;
  const std::unique_ptr<UnimplementedService::Stub> unimplemented;
};

struct Case {
  std::string api;   // of the client: "Blocking"
  std::string name;  // gRPC's: "empty_unary"
  void (*run)(Stubs& stubs);
};

// As the name of a test: "Blocking_empty_unary".
std::string NameOf(const Case& c);
std::ostream& operator<<(std::ostream& out, const Case& c);

// The clients: with blocking functions, with reactors, with completion queues,
// and with coroutines.
std::vector<Case> BlockingCases();
std::vector<Case> ReactorCases();
std::vector<Case> QueueCases();
std::vector<Case> CoroutineCases();
// Those of all clients.
std::vector<Case> AllCases();

// ---- The figures.

// Of payloads; the n-th response answers the n-th request.
inline constexpr size_t kStreamMessages = 4;
inline constexpr int32_t kRequestBytes[kStreamMessages] = {27182, 8, 1828,
                                                           45904};
inline constexpr int32_t kResponseBytes[kStreamMessages] = {31415, 9, 2653,
                                                            58979};
inline constexpr int32_t kAggregatedRequestBytes = 74922;

// Of large_unary and custom_metadata.
inline constexpr int32_t kLargeRequestBytes = 271828;
inline constexpr int32_t kLargeResponseBytes = 314159;

// Of status_code_and_message.
inline constexpr rpc::StatusCode kStatusCode = rpc::StatusCode::UNKNOWN;
inline constexpr char kStatusMessage[] = "test status message";
// Of special_status_message, with U+263A and U+1F608.
inline constexpr char kSpecialStatusMessage[] =
    "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP "
    "\xf0\x9f\x98\x88\t\n";

// Of timeout_on_sleeping_server.
inline constexpr absl::Duration kShortTimeout = absl::Milliseconds(1);

// ---- Requests, with payloads of zeros.

SimpleRequest LargeRequest();
// To end with kStatusCode.
SimpleRequest StatusRequest(const char* message);
StreamingInputCallRequest InputRequest(int32_t payload_bytes);
// server_streaming's one request, without a payload.
StreamingOutputCallRequest OutputRequest();
// For one response.
StreamingOutputCallRequest DuplexRequest(int32_t payload_bytes,
                                         int32_t response_bytes);
// For none, as the server of timeout_on_sleeping_server sleeps.
StreamingOutputCallRequest SleepyRequest();
StreamingOutputCallRequest DuplexStatusRequest(const char* message);

// Of custom_metadata.
void AddEchoedMetadata(rpc::ClientContext& context);

// ---- What must come.

void ExpectZeros(const Payload& payload, int32_t bytes);
void ExpectStatus(const rpc::Status& status, const char* message);
// What AddEchoedMetadata added, at their places and once.
void ExpectEchoedMetadata(const rpc::ClientContext& context);

}  // namespace interop

#endif  // VERBENA_TESTS_E2E_INTEROP_CASES_H_
