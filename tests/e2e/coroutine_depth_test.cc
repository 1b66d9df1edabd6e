// Goal: a coroutine whose awaits are over at once stays at one depth of the
// stack, however often it awaits. Method: loops in which nothing suspends (the
// tasks end at once, the streams are over, the messages are there), and the
// addresses of the stack's frames on the way.
#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"

namespace e2e {
namespace {

// An await that nests needs a hundred bytes at least.
constexpr int kAwaits = 5'000;
constexpr uintptr_t kFewFrames = 64 << 10;

// How far apart the depths are at which it was noted, of those on one thread
// without another one in between.
class Depths {
 public:
  [[gnu::noinline]] void Note() {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    const auto thread = std::this_thread::get_id();
    if (std::exchange(thread_, thread) != thread) least_ = most_ = here;
    least_ = std::min(least_, here);
    most_ = std::max(most_, here);
    spread_ = std::max(spread_, most_ - least_);
  }
  uintptr_t spread() const { return spread_; }

 private:
  std::thread::id thread_;
  uintptr_t least_ = 0;
  uintptr_t most_ = 0;
  uintptr_t spread_ = 0;
};

// ---- Tasks.

rpc::Task<int> Number(int number) { co_return number; }
rpc::Task<> Nothing() { co_return; }
rpc::Task<> Failure() {
  throw std::runtime_error("at once");
  co_return;
}

TEST(CoroutineDepthTest, TasksThatEndAtOnce) {
  Depths depths;
  rpc::SyncWait([](Depths* depths) -> rpc::Task<> {
    for (int i = 0; i < kAwaits; ++i) {
      EXPECT_EQ(co_await Number(i), i);
      co_await Nothing();
      depths->Note();
    }
  }(&depths));
  EXPECT_LT(depths.spread(), kFewFrames);
}

TEST(CoroutineDepthTest, TasksThatThrowAtOnce) {
  Depths depths;
  int thrown = 0;
  rpc::SyncWait([](Depths* depths, int* thrown) -> rpc::Task<> {
    for (int i = 0; i < kAwaits; ++i) {
      try {
        co_await Failure();
      } catch (const std::runtime_error&) {
        ++*thrown;
      }
      depths->Note();
    }
  }(&depths, &thrown));
  EXPECT_EQ(thrown, kAwaits);
  EXPECT_LT(depths.spread(), kFewFrames);
}

// ---- Streams.

// Each operation is over at once, as the stream is.
template <class Stream>
rpc::Task<> UseDeadStream(Stream* stream, Depths* depths) {
  Parcel parcel;
  for (int i = 0; i < kAwaits; ++i) {
    EXPECT_FALSE(co_await stream->Write(parcel));
    EXPECT_FALSE(co_await stream->Read(&parcel));
    depths->Note();
  }
}

class ServedByCoroutines final : public Parcels::CoroutineService {
 public:
  // As many messages as the request says; there is room for all of them.
  rpc::Task<rpc::Status> Download(
      rpc::CallbackServerContext*, const Parcel* request,
      rpc::CoroServerWriter<Parcel>* writer) override {
    Depths depths;
    for (int i = 0; i < request->responses(); ++i) {
      EXPECT_TRUE(co_await writer->Write(Parcel()));
      depths.Note();
    }
    spread.set_value(depths.spread());
    co_return rpc::Status::OK;
  }
  // Until it is cancelled, and then on.
  rpc::Task<rpc::Status> Chat(
      rpc::CallbackServerContext*,
      rpc::CoroServerReaderWriter<Parcel, Parcel>* stream) override {
    Parcel parcel;
    EXPECT_TRUE(co_await stream->Read(&parcel));
    EXPECT_TRUE(co_await stream->Write(parcel));
    EXPECT_FALSE(co_await stream->Read(&parcel));
    Depths depths;
    co_await UseDeadStream(stream, &depths);
    spread.set_value(depths.spread());
    co_return rpc::Status::OK;
  }

  std::promise<uintptr_t> spread;  // of the handler
};

class StreamDepthTest : public testing::Test {
 protected:
  StreamDepthTest() : ends_(&service_) {}

  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }

  ServedByCoroutines service_;
  OneConnection ends_;
  std::unique_ptr<Parcels::Stub> stub_;
};

TEST_F(StreamDepthTest, OperationsOfAStreamThatIsOver) {
  Depths depths;
  rpc::SyncWait([](Parcels::Stub* stub, Depths* depths) -> rpc::Task<> {
    TimedContext context;
    const auto stream = stub->coro()->Chat(&context);
    Parcel parcel;
    EXPECT_TRUE(co_await stream->Write(parcel));
    EXPECT_TRUE(co_await stream->Read(&parcel));
    context.TryCancel();
    EXPECT_FALSE(co_await stream->Read(&parcel));
    co_await UseDeadStream(stream.get(), depths);
    EXPECT_TRUE(HasCode(co_await stream->Finish(), rpc::StatusCode::CANCELLED));
  }(stub_.get(), &depths));
  EXPECT_LT(depths.spread(), kFewFrames);
  EXPECT_LT(service_.spread.get_future().get(), kFewFrames);
}

// A window has room for a thousand that are empty. Few are not there yet.
TEST_F(StreamDepthTest, MessagesThatAreThere) {
  static constexpr int kMessages = 1'000;
  TimedContext context;
  const auto reader = stub_->coro()->Download(&context, ParcelFor(kMessages));
  EXPECT_LT(service_.spread.get_future().get(), kFewFrames);
  Depths depths;
  rpc::SyncWait(
      [](rpc::CoroClientReader<Parcel>* reader, Depths* depths) -> rpc::Task<> {
        Parcel parcel;
        int count = 0;
        for (; co_await reader->Read(&parcel); ++count) depths->Note();
        EXPECT_EQ(count, kMessages);
        EXPECT_OK(co_await reader->Finish());
      }(reader.get(), &depths));
  EXPECT_LT(depths.spread(), kFewFrames);
}

}  // namespace
}  // namespace e2e
