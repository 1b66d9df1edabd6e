// The service of streams.proto, by each of the server's APIs: what a test says
// of streams is to hold for all of them.
//
//   StreamsProgress progress;
//   std::unique_ptr<ServedStreams> streams = ServeStreams(Api::kCallback,
//                                                         &progress);
//   Server server({}, ServerUri(), &streams->service(), streams->queue());
//   if (server.ok()) streams->Begin();
#ifndef VERBENA_TESTS_E2E_STREAMS_SERVICES_H_
#define VERBENA_TESTS_E2E_STREAMS_SERVICES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "rpc/rpc.h"
#include "tests/e2e/streams.rpc.pb.h"

namespace e2e {

enum class Api { kBlocking, kCallback, kQueue, kCoroutine };

std::string NameOf(Api api);

// What handlers wait for and have done. Any thread.
struct StreamsProgress {
  absl::Notification go_on;  // for orders with `hold`
  std::atomic<int64_t> written{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> chats{0};  // under way
};

// Serves one server. It must go after the server, and not before it.
class ServedStreams {
 public:
  virtual ~ServedStreams() = default;
  virtual rpc::Service& service() = 0;
  // Where the server's builder is to put a queue; null: none is needed.
  virtual std::unique_ptr<rpc::ServerCompletionQueue>* queue() {
    return nullptr;
  }
  // The server runs. REQUIRES: there is a queue, where one is needed.
  virtual void Begin() {}
};

// `progress` must outlive the result.
std::unique_ptr<ServedStreams> ServeStreams(Api api, StreamsProgress* progress);

// For the services: what an order asks for.
rpc::Status StatusOf(int code);
void FillItem(const Order& order, int64_t number, Item* item);

std::unique_ptr<ServedStreams> ServeBlockingStreams(StreamsProgress* progress);
std::unique_ptr<ServedStreams> ServeCallbackStreams(StreamsProgress* progress);
std::unique_ptr<ServedStreams> ServeQueuedStreams(StreamsProgress* progress);
std::unique_ptr<ServedStreams> ServeCoroutineStreams(StreamsProgress* progress);

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_STREAMS_SERVICES_H_
