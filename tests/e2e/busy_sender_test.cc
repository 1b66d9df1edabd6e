// Goal: a server whose handler blocks the thread that drives is looked after
// also where other handlers send something all the time, and so come by.
// Method: a stream whose handler writes ten times a millisecond, a handler that
// blocks until it is told otherwise, and quick calls meanwhile.
#include <atomic>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.rpc.pb.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

class BusyService final : public Parcels::Service {
 public:
  rpc::Status Unary(rpc::ServerContext* context, const Parcel* request,
                    Parcel* response) override {
    blocked.Notify();
    release.WaitForNotification();
    return rpc::Status::OK;
  }

  rpc::Status Download(rpc::ServerContext* context, const Parcel* request,
                       rpc::ServerWriter<Parcel>* writer) override {
    while (writer->Write(Parcel())) {
      // A thread that sleeps may not come back for a millisecond.
      const absl::Time next = absl::Now() + absl::Microseconds(100);
      while (absl::Now() < next) {
      }
    }
    return rpc::Status::OK;
  }

  absl::Notification blocked;
  absl::Notification release;
};

TEST(BusySenderTest, QuickCallsAreServedBesideABlockedAndABusyHandler) {
  BusyService service;
  OneConnection ends(&service);
  ASSERT_TRUE(ends.ok());
  const auto stub = Parcels::NewStub(ends.channel());

  const Client other(ends.server().address());
  EXPECT_OK(other.Echo(100, 0));

  rpc::ClientContext busy_context;
  std::atomic<int> read{0};
  std::thread busy([&] {
    const auto reader = stub->Download(&busy_context, Parcel());
    Parcel parcel;
    while (reader->Read(&parcel)) ++read;
    (void)reader->Finish();  // it is cancelled
  });
  EXPECT_TRUE(Eventually([&] { return read > 10; }));

  rpc::ClientContext blocked_context;
  Parcel request, response;
  absl::Notification over;
  stub->async()->Unary(&blocked_context, &request, &response,
                       [&](const rpc::Status& status) {
                         EXPECT_OK(status);
                         over.Notify();
                       });
  service.blocked.WaitForNotification();
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(other.Echo(100, 0, absl::Seconds(5))) << "call " << i;
  }

  service.release.Notify();
  over.WaitForNotification();
  busy_context.TryCancel();
  busy.join();
}

}  // namespace
}  // namespace e2e
