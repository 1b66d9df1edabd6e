// hello.cc by the callback API: neither side has a thread that waits for a
// call, however many there are.
//
//   bazel run -c opt //examples/hello:hello_callback -- World
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "examples/hello/hello.rpc.pb.h"
#include "rpc/rpc.h"

class GreeterImpl final : public hello::Greeter::CallbackService {
  // The call ends with Finish, here or later, on any thread.
  rpc::ServerUnaryReactor* SayHello(rpc::CallbackServerContext* context,
                                    const hello::HelloRequest* request,
                                    hello::HelloReply* reply) override {
    reply->set_message("Hello " + request->name());
    rpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(rpc::Status::OK);
    return reactor;
  }
};

int main(int argc, char** argv) {
  // The server. Port 0: a free one.
  GreeterImpl service;
  int port = 0;
  rpc::ServerBuilder builder;
  builder.AddListeningPort("rdma://127.0.0.1:0",
                           rpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  std::unique_ptr<rpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;  // the log says why

  // A client. Context, request and reply live until the callback runs.
  auto stub = hello::Greeter::NewStub(
      rpc::CreateChannel("rdma://127.0.0.1:" + std::to_string(port),
                         rpc::InsecureChannelCredentials()));
  hello::HelloRequest request;
  hello::HelloReply reply;
  rpc::ClientContext context;
  request.set_name(argc > 1 ? argv[1] : "World");
  std::promise<rpc::Status> done;
  stub->async()->SayHello(
      &context, &request, &reply,
      [&done](rpc::Status status) { done.set_value(std::move(status)); });

  // Here is time for something else.
  const rpc::Status status = done.get_future().get();
  if (!status.ok()) {
    std::cerr << status.error_message() << '\n';
    return 1;
  }
  std::cout << reply.message() << '\n';
}
