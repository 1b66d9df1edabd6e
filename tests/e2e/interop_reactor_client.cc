// The cases of interop_cases.h with reactors, which keep to reaction_rules.h.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "rpc/rpc.h"
#include "tests/e2e/client_reactors.h"
#include "tests/e2e/interop_cases.h"
#include "tests/e2e/interop_runs.h"

namespace interop {
namespace {

class UnaryReactor final : public rpc::ClientUnaryReactor {
 public:
  rpc::Status Call() {
    StartCall();
    done_.WaitForNotification();
    return status_;
  }

 private:
  void OnDone(const rpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }

  rpc::Status status_;
  absl::Notification done_;
};

// `Base`: one of the three kinds. What is started comes from a thread of its
// own, so a hold keeps the call until Finish.
template <class Base>
class ReactorStream {
 public:
  // `bind` gives the reactor to a stub.
  template <class Bind>
  explicit ReactorStream(Bind bind) {
    bind(&reactor_);
    reactor_.AddHold();
    reactor_.Start();
  }

  template <class R>
  bool Read(R* message) {
    return Result(reactor_.on_read, [&] { reactor_.Read(message); });
  }
  template <class W>
  bool Write(const W& message) {
    return Result(reactor_.on_write, [&] { reactor_.Write(&message); });
  }
  bool WritesDone() {
    return Result(reactor_.on_writes_done, [&] { reactor_.WritesDone(); });
  }
  rpc::Status Finish() {
    reactor_.Release();
    return reactor_.Wait();
  }

 private:
  template <class Start>
  static bool Result(std::function<void(bool)>& reaction, Start start) {
    bool result = false;
    absl::Notification done;
    reaction = [&](bool ok) {
      result = ok;
      done.Notify();
    };
    start();
    done.WaitForNotification();
    return result;
  }

  e2e::Reactor<Base> reactor_;
};

class ReactorClient {
 public:
  explicit ReactorClient(Stubs& stubs) : stubs_(stubs) {}

  rpc::Status EmptyCall(rpc::ClientContext* context, const Empty& request,
                        Empty* response) {
    UnaryReactor reactor;
    stubs_.test->async()->EmptyCall(context, &request, response, &reactor);
    return reactor.Call();
  }
  rpc::Status UnaryCall(rpc::ClientContext* context,
                        const SimpleRequest& request,
                        SimpleResponse* response) {
    UnaryReactor reactor;
    stubs_.test->async()->UnaryCall(context, &request, response, &reactor);
    return reactor.Call();
  }
  rpc::Status UnimplementedCall(rpc::ClientContext* context,
                                const Empty& request, Empty* response) {
    UnaryReactor reactor;
    stubs_.test->async()->UnimplementedCall(context, &request, response,
                                            &reactor);
    return reactor.Call();
  }
  rpc::Status UnimplementedService(rpc::ClientContext* context,
                                   const Empty& request, Empty* response) {
    UnaryReactor reactor;
    stubs_.unimplemented->async()->UnimplementedCall(context, &request,
                                                     response, &reactor);
    return reactor.Call();
  }
  auto StreamingInputCall(rpc::ClientContext* context,
                          StreamingInputCallResponse* response) {
    using Base = rpc::ClientWriteReactor<StreamingInputCallRequest>;
    return std::make_unique<ReactorStream<Base>>([&](Base* reactor) {
      stubs_.test->async()->StreamingInputCall(context, response, reactor);
    });
  }
  auto StreamingOutputCall(rpc::ClientContext* context,
                           const StreamingOutputCallRequest& request) {
    using Base = rpc::ClientReadReactor<StreamingOutputCallResponse>;
    // Sent by StartCall, and not needed afterwards.
    return std::make_unique<ReactorStream<Base>>([&](Base* reactor) {
      stubs_.test->async()->StreamingOutputCall(context, &request, reactor);
    });
  }
  auto FullDuplexCall(rpc::ClientContext* context) {
    using Base = rpc::ClientBidiReactor<StreamingOutputCallRequest,
                                        StreamingOutputCallResponse>;
    return std::make_unique<ReactorStream<Base>>([&](Base* reactor) {
      stubs_.test->async()->FullDuplexCall(context, reactor);
    });
  }

 private:
  Stubs& stubs_;
};

}  // namespace

std::vector<Case> ReactorCases() { return CasesOf<ReactorClient>("Reactor"); }

}  // namespace interop
