#include "tests/e2e/streams_services.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/test_pattern.h"

namespace e2e {
namespace {

class BlockingStreams final : public ServedStreams, private Streams::Service {
 public:
  explicit BlockingStreams(StreamsProgress* progress) : progress_(*progress) {}

  rpc::Service& service() override { return *this; }

 private:
  rpc::Status Count(rpc::ServerContext* context, const Order* order,
                    rpc::ServerWriter<Item>* writer) override {
    context->AddInitialMetadata("kind", "count");
    context->AddTrailingMetadata("count", absl::StrCat(order->count()));
    if (order->hold()) {
      writer->SendInitialMetadata();
      progress_.go_on.WaitForNotification();
    }
    Item item;
    for (int64_t i = 0; i < order->count(); ++i) {
      FillItem(*order, i, &item);
      if (!writer->Write(item)) break;
      ++progress_.written;
    }
    if (context->IsCancelled()) ++progress_.cancelled;
    return order->code() != 0 ? StatusOf(order->code()) : rpc::Status::OK;
  }

  rpc::Status Sum(rpc::ServerContext* context, rpc::ServerReader<Item>* reader,
                  Total* total) override {
    Item item;
    while (reader->Read(&item)) {
      if (item.code() != 0) return StatusOf(item.code());
      total->set_numbers(total->numbers() + item.number());
      total->set_bytes(total->bytes() +
                       static_cast<int64_t>(item.data().size()));
    }
    if (context->IsCancelled()) ++progress_.cancelled;
    context->AddTrailingMetadata("sum", "done");
    return rpc::Status::OK;
  }

  rpc::Status Chat(rpc::ServerContext* context,
                   rpc::ServerReaderWriter<Item, Item>* stream) override {
    ++progress_.chats;
    Item item;
    rpc::BufferChain attachment;
    while (stream->Read(&item, &attachment)) {
      if (item.code() != 0) return StatusOf(item.code());
      if (!stream->Write(item, rpc::WriteOptions().set_attachment(
                                   std::move(attachment)))) {
        break;
      }
      attachment.clear();
    }
    if (context->IsCancelled()) ++progress_.cancelled;
    --progress_.chats;
    return rpc::Status::OK;
  }

  StreamsProgress& progress_;
};

}  // namespace

std::string NameOf(Api api) {
  switch (api) {
    case Api::kBlocking:
      return "Blocking";
    case Api::kCallback:
      return "Callback";
    case Api::kQueue:
      return "Queue";
    case Api::kCoroutine:
      return "Coroutine";
  }
  return "";
}

rpc::Status StatusOf(int code) {
  return rpc::Status(static_cast<rpc::StatusCode>(code),
                     absl::StrCat("asked for ", code), "details");
}

void FillItem(const Order& order, int64_t number, Item* item) {
  item->set_number(number);
  item->set_data(benchmarks::TestPattern(static_cast<size_t>(order.bytes()),
                                         static_cast<uint64_t>(number)));
}

std::unique_ptr<ServedStreams> ServeBlockingStreams(StreamsProgress* progress) {
  return std::make_unique<BlockingStreams>(progress);
}

std::unique_ptr<ServedStreams> ServeStreams(Api api,
                                            StreamsProgress* progress) {
  switch (api) {
    case Api::kBlocking:
      return ServeBlockingStreams(progress);
    case Api::kCallback:
      return ServeCallbackStreams(progress);
    case Api::kQueue:
      return ServeQueuedStreams(progress);
    case Api::kCoroutine:
      return ServeCoroutineStreams(progress);
  }
  return nullptr;
}

}  // namespace e2e
