// hello.cc by coroutines: as short as the blocking form, and no thread waits
// for a call, however many there are.
//
//   bazel run -c opt //examples/hello:hello_coroutine -- World
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "examples/hello/hello.rpc.pb.h"
#include "rpc/rpc.h"

class GreeterImpl final : public hello::Greeter::CoroutineService {
  // It may co_await calls of its own before it answers.
  rpc::Task<rpc::Status> SayHello(rpc::CallbackServerContext* context,
                                  const hello::HelloRequest* request,
                                  hello::HelloReply* reply) override {
    reply->set_message("Hello " + request->name());
    co_return rpc::Status::OK;
  }
};

rpc::Task<int> Greet(hello::Greeter::Stub* stub, std::string name) {
  hello::HelloRequest request;
  hello::HelloReply reply;
  rpc::ClientContext context;
  request.set_name(std::move(name));
  const rpc::Status status =
      co_await stub->coro()->SayHello(&context, request, &reply);
  if (!status.ok()) {
    std::cerr << status.error_message() << '\n';
    co_return 1;
  }
  std::cout << reply.message() << '\n';
  co_return 0;
}

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

  // A client. main is no coroutine, so it waits for one; rpc::Detach does not.
  auto stub = hello::Greeter::NewStub(
      rpc::CreateChannel("rdma://127.0.0.1:" + std::to_string(port),
                         rpc::InsecureChannelCredentials()));
  return rpc::SyncWait(Greet(stub.get(), argc > 1 ? argv[1] : "World"));
}
