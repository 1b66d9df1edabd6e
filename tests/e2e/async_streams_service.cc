// The service of streams.proto by a completion queue, with one thread that
// takes its events.
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

// Calls of a method that is asynchronous wait for somebody to ask for them, so
// that Missing is not.
using AsyncStreams =
    Streams::WithAsyncMethod_Count<Streams::WithAsyncMethod_Sum<
        Streams::WithAsyncMethod_Chat<Streams::Service>>>;

// What the calls of a server have in common.
struct Served {
  AsyncStreams service;
  std::unique_ptr<rpc::ServerCompletionQueue> queue;
  StreamsProgress* progress;
};

// A call, from the request for it to its last event. Its tags are itself: it
// has begun one operation at a time.
class QueuedCall {
 public:
  virtual ~QueuedCall() = default;
  // The operation is done.
  virtual void Proceed(bool ok) = 0;
};

template <class Derived>
class Steps : public QueuedCall {
 public:
  void Proceed(bool ok) final { (static_cast<Derived*>(this)->*next_)(ok); }

 protected:
  using Step = void (Derived::*)(bool ok);

  explicit Steps(Served* served) : served_(*served) {}

  rpc::ServerCompletionQueue* queue() { return served_.queue.get(); }
  // The tag of an operation that `next` follows.
  void* Then(Step next) {
    next_ = next;
    return static_cast<QueuedCall*>(this);
  }
  // The request was answered. False: the server shuts down, and this is gone.
  bool HasCall(bool ok) {
    if (ok) {
      new Derived(&served_);
    } else {
      delete this;
    }
    return ok;
  }
  // Before the call's end.
  void NoteCancelled() {
    if (context_.IsCancelled()) ++served_.progress->cancelled;
  }
  void OnFinished(bool /*ok*/) { delete this; }

  Served& served_;
  rpc::ServerContext context_;

 private:
  Step next_ = nullptr;
};

class CountCall final : public Steps<CountCall> {
 public:
  explicit CountCall(Served* served) : Steps(served) {
    served_.service.RequestCount(&context_, &order_, &writer_, queue(), queue(),
                                 Then(&CountCall::OnRequested));
  }
  ~CountCall() override {
    if (holder_.has_value()) holder_->join();
  }

 private:
  void OnRequested(bool ok) {
    if (!HasCall(ok)) return;
    context_.AddInitialMetadata("kind", "count");
    context_.AddTrailingMetadata("count", absl::StrCat(order_.count()));
    if (!order_.hold()) return Next();
    writer_.SendInitialMetadata(Then(&CountCall::OnMetadata));
  }
  void OnMetadata(bool /*ok*/) {
    holder_.emplace([this] {
      served_.progress->go_on.WaitForNotification();
      Next();
    });
  }
  void OnWritten(bool ok) {
    if (!ok) return End();
    ++served_.progress->written;
    Next();
  }
  void Next() {
    if (next_ == order_.count()) return End();
    FillItem(order_, next_++, &item_);
    writer_.Write(item_, Then(&CountCall::OnWritten));
  }
  void End() {
    NoteCancelled();
    writer_.Finish(
        order_.code() != 0 ? StatusOf(order_.code()) : rpc::Status::OK,
        Then(&CountCall::OnFinished));
  }

  Order order_;
  rpc::ServerAsyncWriter<Item> writer_{&context_};
  std::optional<std::thread> holder_;
  int64_t next_ = 0;
  Item item_;
};

class SumCall final : public Steps<SumCall> {
 public:
  explicit SumCall(Served* served) : Steps(served) {
    served_.service.RequestSum(&context_, &reader_, queue(), queue(),
                               Then(&SumCall::OnRequested));
  }

 private:
  void OnRequested(bool ok) {
    if (HasCall(ok)) Read();
  }
  void Read() { reader_.Read(&item_, Then(&SumCall::OnRead)); }
  void OnRead(bool ok) {
    if (!ok) {
      NoteCancelled();
      context_.AddTrailingMetadata("sum", "done");
      return reader_.Finish(total_, rpc::Status::OK,
                            Then(&SumCall::OnFinished));
    }
    if (item_.code() != 0) {
      return reader_.FinishWithError(StatusOf(item_.code()),
                                     Then(&SumCall::OnFinished));
    }
    total_.set_numbers(total_.numbers() + item_.number());
    total_.set_bytes(total_.bytes() +
                     static_cast<int64_t>(item_.data().size()));
    Read();
  }

  rpc::ServerAsyncReader<Total, Item> reader_{&context_};
  Item item_;
  Total total_;
};

class ChatCall final : public Steps<ChatCall> {
 public:
  explicit ChatCall(Served* served) : Steps(served) {
    served_.service.RequestChat(&context_, &stream_, queue(), queue(),
                                Then(&ChatCall::OnRequested));
  }

 private:
  void OnRequested(bool ok) {
    if (!HasCall(ok)) return;
    ++served_.progress->chats;
    Read();
  }
  void Read() { stream_.Read(&item_, &attachment_, Then(&ChatCall::OnRead)); }
  void OnRead(bool ok) {
    if (!ok) return End(rpc::Status::OK);
    if (item_.code() != 0) return End(StatusOf(item_.code()));
    stream_.Write(
        item_,
        rpc::WriteOptions().set_attachment(std::exchange(attachment_, {})),
        Then(&ChatCall::OnWritten));
  }
  void OnWritten(bool ok) { ok ? Read() : End(rpc::Status::OK); }
  void End(const rpc::Status& status) {
    NoteCancelled();
    --served_.progress->chats;
    stream_.Finish(status, Then(&ChatCall::OnFinished));
  }

  rpc::ServerAsyncReaderWriter<Item, Item> stream_{&context_};
  Item item_;
  rpc::BufferChain attachment_;
};

class QueuedStreams final : public ServedStreams {
 public:
  explicit QueuedStreams(StreamsProgress* progress) {
    served_.progress = progress;
  }
  // The server has shut down: what is left in the queue are requests that no
  // call came for.
  ~QueuedStreams() override {
    if (!thread_.has_value()) return;
    served_.queue->Shutdown();
    thread_->join();
  }

  rpc::Service& service() override { return served_.service; }
  std::unique_ptr<rpc::ServerCompletionQueue>* queue() override {
    return &served_.queue;
  }
  void Begin() override {
    new CountCall(&served_);
    new SumCall(&served_);
    new ChatCall(&served_);
    thread_.emplace([this] {
      void* tag;
      bool ok;
      while (served_.queue->Next(&tag, &ok)) {
        static_cast<QueuedCall*>(tag)->Proceed(ok);
      }
    });
  }

 private:
  Served served_;
  std::optional<std::thread> thread_;
};

}  // namespace

std::unique_ptr<ServedStreams> ServeQueuedStreams(StreamsProgress* progress) {
  return std::make_unique<QueuedStreams>(progress);
}

}  // namespace e2e
