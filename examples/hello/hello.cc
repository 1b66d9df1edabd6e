// The least that there is to see: a service, its server, and a client, here in
// one process. README.md shows this file.
//
//   bazel run -c opt //examples/hello -- World
#include <iostream>
#include <memory>
#include <string>

#include "examples/hello/hello.rpc.pb.h"
#include "rpc/rpc.h"

class GreeterImpl final : public hello::Greeter::Service {
  rpc::Status SayHello(rpc::ServerContext* context,
                       const hello::HelloRequest* request,
                       hello::HelloReply* reply) override {
    reply->set_message("Hello " + request->name());
    return rpc::Status::OK;
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

  // A client.
  auto stub = hello::Greeter::NewStub(
      rpc::CreateChannel("rdma://127.0.0.1:" + std::to_string(port),
                         rpc::InsecureChannelCredentials()));
  hello::HelloRequest request;
  hello::HelloReply reply;
  rpc::ClientContext context;
  request.set_name(argc > 1 ? argv[1] : "World");
  const rpc::Status status = stub->SayHello(&context, request, &reply);
  if (!status.ok()) {
    std::cerr << status.error_message() << '\n';
    return 1;
  }
  std::cout << reply.message() << '\n';
}
