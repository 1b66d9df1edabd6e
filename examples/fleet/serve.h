// What the main() of each server has in common: where it listens, and when it
// ends.
//
//   rpc::ServerBuilder builder;
//   builder.RegisterService(&service);
//   std::unique_ptr<rpc::Server> server = fleet::Start(argc, argv, &builder);
//   if (server == nullptr) return 1;
//   fleet::WaitForSignal();
//   fleet::Stop(server.get());
//
// Thread rule: the main thread, before it makes any other.
#ifndef VERBENA_EXAMPLES_FLEET_SERVE_H_
#define VERBENA_EXAMPLES_FLEET_SERVE_H_

#include <memory>

#include "rpc/rpc.h"

namespace fleet {

// Starts at the address that is the program's one argument ("127.0.0.1:0": at a
// free port), and prints the line "listening on ADDRESS". Null: it cannot; what
// is wrong was printed.
std::unique_ptr<rpc::Server> Start(int argc, char** argv,
                                   rpc::ServerBuilder* builder);

// Blocks until SIGINT or SIGTERM.
void WaitForSignal();

// Lets calls that run finish, for a few seconds.
void Stop(rpc::Server* server);

}  // namespace fleet

#endif  // VERBENA_EXAMPLES_FLEET_SERVE_H_
