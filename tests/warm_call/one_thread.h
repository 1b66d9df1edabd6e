// A client and a server over the software device that one thread drives, so
// that what a call takes can be counted: nobody waits, nobody spins, and two
// runs are the same.
//
//   OneThread both(kForms[0], [](bool server) { ... }, [] {});
//   both.Call();  // a warm one
//
// It is the product's own way: a stub, a channel, a server, generated code, two
// pollers, two devices that share memory. Three things are different. The
// pollers' keepers do not start before the end. When the calling thread is
// about to wait for its answer, it first drives the server's poller until the
// handler has run; the answer is there when it then drives the client's. So the
// client makes one turn for each call, and so does the server, which besides
// enters and leaves its poller. And time stands still (stopped_clock.h).
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_WARM_CALL_ONE_THREAD_H_
#define VERBENA_TESTS_WARM_CALL_ONE_THREAD_H_

#include <functional>
#include <memory>

#include "rdma_transport/poller.h"
#include "rpc/rpc.h"
#include "tests/warm_call/plan.h"
#include "tests/warm_call/warm_call.rpc.pb.h"

namespace warm_call {

class OneThread {
 public:
  // Called whenever the thread begins to act for the server (true), within a
  // call, and when it acts for the client again.
  using OnSwitch = std::function<void(bool server)>;

  // Connects, and makes as many calls of this form as make the rest warm.
  // `in_handler` is run by each handler. A call that gets stuck ends the
  // program with a message.
  OneThread(const Form& form, OnSwitch on_switch,
            std::function<void()> in_handler);
  ~OneThread();

  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

  // A unary call, which is over when this returns. Ends the program where it
  // fails.
  void Call();

 private:
  struct Handlers;
  class BlockingService;
  class CallbackService;
  class Reactor;

  rpc::Service* ServiceOf(const Form& form);
  rpc::Status CallbackCall(rpc::ClientContext& context);
  void AllocateAttachment();
  void Connect();
  void ServerTurn();

  const OnSwitch on_switch_;
  const Form form_;
  const std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<BlockingService> blocking_service_;
  std::unique_ptr<CallbackService> callback_service_;
  std::unique_ptr<rpc::Server> server_;
  rdma::Poller* server_poller_ = nullptr;
  std::shared_ptr<rpc::Channel> channel_;
  std::unique_ptr<Echo::Stub> stub_;
  // Another thread drives the server's poller.
  bool server_is_driven_ = false;
  rpc::BufferChain attachment_;  // sent with each call
  Blob request_;
  Blob response_;
  Parts parts_request_;
  Parts parts_response_;
};

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_ONE_THREAD_H_
