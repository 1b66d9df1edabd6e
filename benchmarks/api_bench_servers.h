// api_bench's servers: one service by each API of the server.
//
//   std::unique_ptr<ApiServer> server = MakeApiServer("queue");
//   server->AddTo(builder);
//   std::unique_ptr<rpc::Server> running = builder.BuildAndStart();
//   server->Serve();
//   ...
//   running->Shutdown();
//   server->Stop();  // before it goes
//
// Thread rule: one thread.
#ifndef VERBENA_BENCHMARKS_API_BENCH_SERVERS_H_
#define VERBENA_BENCHMARKS_API_BENCH_SERVERS_H_

#include <memory>
#include <string>

#include "rpc/rpc.h"

namespace benchmarks {

class ApiServer {
 public:
  virtual ~ApiServer() = default;
  virtual void AddTo(rpc::ServerBuilder& builder) = 0;
  // The server runs, and after its Shutdown: for those with a thread.
  virtual void Serve() {}
  virtual void Stop() {}
};

// `api`: blocking, callback, queue or coroutine; else null.
std::unique_ptr<ApiServer> MakeApiServer(const std::string& api);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_API_BENCH_SERVERS_H_
