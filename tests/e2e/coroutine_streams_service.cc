// The service of streams.proto by coroutines.
#include <coroutine>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

// Has a coroutine go on, on a thread of its own, once orders with `hold` may.
class Held {
 public:
  explicit Held(StreamsProgress* progress) : progress_(*progress) {}

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> awaiter) {
    std::thread([&progress = progress_, awaiter] {
      progress.go_on.WaitForNotification();
      awaiter.resume();
    }).detach();
  }
  void await_resume() const {}

 private:
  StreamsProgress& progress_;
};

class CoroutineStreams final : public ServedStreams,
                               private Streams::CoroutineService {
 public:
  explicit CoroutineStreams(StreamsProgress* progress) : progress_(*progress) {}

  rpc::Service& service() override { return *this; }

 private:
  rpc::Task<rpc::Status> Count(rpc::CallbackServerContext* context,
                               const Order* order,
                               rpc::CoroServerWriter<Item>* writer) override {
    context->AddInitialMetadata("kind", "count");
    context->AddTrailingMetadata("count", absl::StrCat(order->count()));
    if (order->hold()) {
      co_await writer->SendInitialMetadata();
      co_await Held(&progress_);
    }
    Item item;
    for (int64_t i = 0; i < order->count(); ++i) {
      FillItem(*order, i, &item);
      if (!co_await writer->Write(item)) break;
      ++progress_.written;
    }
    if (context->IsCancelled()) ++progress_.cancelled;
    co_return order->code() != 0 ? StatusOf(order->code()) : rpc::Status::OK;
  }

  rpc::Task<rpc::Status> Sum(rpc::CallbackServerContext* context,
                             rpc::CoroServerReader<Item>* reader,
                             Total* total) override {
    Item item;
    while (co_await reader->Read(&item)) {
      if (item.code() != 0) co_return StatusOf(item.code());
      total->set_numbers(total->numbers() + item.number());
      total->set_bytes(total->bytes() +
                       static_cast<int64_t>(item.data().size()));
    }
    if (context->IsCancelled()) ++progress_.cancelled;
    context->AddTrailingMetadata("sum", "done");
    co_return rpc::Status::OK;
  }

  rpc::Task<rpc::Status> Chat(
      rpc::CallbackServerContext* context,
      rpc::CoroServerReaderWriter<Item, Item>* stream) override {
    ++progress_.chats;
    Item item;
    rpc::BufferChain attachment;
    while (co_await stream->Read(&item, &attachment)) {
      if (item.code() != 0) co_return StatusOf(item.code());
      if (!co_await stream->Write(item, rpc::WriteOptions().set_attachment(
                                            std::exchange(attachment, {})))) {
        break;
      }
    }
    if (context->IsCancelled()) ++progress_.cancelled;
    --progress_.chats;
    co_return rpc::Status::OK;
  }

  StreamsProgress& progress_;
};

}  // namespace

std::unique_ptr<ServedStreams> ServeCoroutineStreams(
    StreamsProgress* progress) {
  return std::make_unique<CoroutineStreams>(progress);
}

}  // namespace e2e
