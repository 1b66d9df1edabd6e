// The service of streams.proto by reactors.
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

class CountReactor final : public rpc::ServerWriteReactor<Item> {
 public:
  CountReactor(rpc::CallbackServerContext* context, const Order* order,
               StreamsProgress* progress)
      : context_(*context), order_(*order), progress_(*progress) {
    context->AddInitialMetadata("kind", "count");
    context->AddTrailingMetadata("count", absl::StrCat(order->count()));
    if (!order->hold()) {
      Next();
      return;
    }
    StartSendInitialMetadata();
    holder_.emplace([this] {
      progress_.go_on.WaitForNotification();
      Next();
    });
  }
  ~CountReactor() override {
    if (holder_.has_value()) holder_->join();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End();
    ++progress_.written;
    Next();
  }
  void OnDone() override {
    if (context_.IsCancelled()) ++progress_.cancelled;
    delete this;
  }

 private:
  void Next() {
    if (next_ == order_.count()) return End();
    FillItem(order_, next_++, &item_);
    StartWrite(&item_);
  }
  void End() {
    Finish(order_.code() != 0 ? StatusOf(order_.code()) : rpc::Status::OK);
  }

  rpc::CallbackServerContext& context_;
  const Order& order_;
  StreamsProgress& progress_;
  std::optional<std::thread> holder_;
  int64_t next_ = 0;
  Item item_;
};

class SumReactor final : public rpc::ServerReadReactor<Item> {
 public:
  SumReactor(rpc::CallbackServerContext* context, Total* total,
             StreamsProgress* progress)
      : context_(*context), total_(*total), progress_(*progress) {
    StartRead(&item_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      context_.AddTrailingMetadata("sum", "done");
      return Finish(rpc::Status::OK);
    }
    if (item_.code() != 0) return Finish(StatusOf(item_.code()));
    total_.set_numbers(total_.numbers() + item_.number());
    total_.set_bytes(total_.bytes() +
                     static_cast<int64_t>(item_.data().size()));
    StartRead(&item_);
  }
  void OnDone() override {
    if (context_.IsCancelled()) ++progress_.cancelled;
    delete this;
  }

 private:
  rpc::CallbackServerContext& context_;
  Total& total_;
  StreamsProgress& progress_;
  Item item_;
};

class ChatReactor final : public rpc::ServerBidiReactor<Item, Item> {
 public:
  ChatReactor(rpc::CallbackServerContext* context, StreamsProgress* progress)
      : context_(*context), progress_(*progress) {
    ++progress_.chats;
    StartRead(&item_, &attachment_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(rpc::Status::OK);
    if (item_.code() != 0) return Finish(StatusOf(item_.code()));
    StartWrite(&item_, rpc::WriteOptions().set_attachment(
                           std::exchange(attachment_, {})));
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(rpc::Status::OK);
    StartRead(&item_, &attachment_);
  }
  void OnDone() override {
    if (context_.IsCancelled()) ++progress_.cancelled;
    --progress_.chats;
    delete this;
  }

 private:
  rpc::CallbackServerContext& context_;
  StreamsProgress& progress_;
  Item item_;
  rpc::BufferChain attachment_;
};

class CallbackStreams final : public ServedStreams,
                              private Streams::CallbackService {
 public:
  explicit CallbackStreams(StreamsProgress* progress) : progress_(progress) {}

  rpc::Service& service() override { return *this; }

 private:
  rpc::ServerWriteReactor<Item>* Count(rpc::CallbackServerContext* context,
                                       const Order* order) override {
    return new CountReactor(context, order, progress_);
  }
  rpc::ServerReadReactor<Item>* Sum(rpc::CallbackServerContext* context,
                                    Total* total) override {
    return new SumReactor(context, total, progress_);
  }
  rpc::ServerBidiReactor<Item, Item>* Chat(
      rpc::CallbackServerContext* context) override {
    return new ChatReactor(context, progress_);
  }

  StreamsProgress* const progress_;
};

}  // namespace

std::unique_ptr<ServedStreams> ServeCallbackStreams(StreamsProgress* progress) {
  return std::make_unique<CallbackStreams>(progress);
}

}  // namespace e2e
