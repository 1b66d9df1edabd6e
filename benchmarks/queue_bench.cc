// `queue_bench` measures what completion queues cost beside the blocking API,
// on either side: Echo of 64 B between two processes.
//
//   queue_bench --rounds=9 --in_flight=16
//
// A queue's client has one thread and --in_flight calls; a queue's server has
// --server_threads threads in Next, which drive the transport. In a mixed
// server they do not, as it has methods of the blocking API, too
// (docs/threading.md). The pairs take turns, so that what else the machine does
// meets all of them; medians of the rounds are printed.
// Exit status: 0, or 1 where a call failed or a server did not start.
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/child_process.h"
#include "benchmarks/cpu_time.h"
#include "benchmarks/latency_histogram.h"
#include "benchmarks/rpc_bench.rpc.pb.h"
#include "rpc/rpc.h"

DEFINE_int32(rounds, 9, "of each pair");
DEFINE_double(seconds, 0.4, "how long each pair is measured in a round");
DEFINE_int32(in_flight, 1, "calls at a time of a queue's client");
DEFINE_int32(server_threads, 1, "in Next, of a queue's server");
DEFINE_string(serve, "", "internal: \"blocking\", \"queue\" or \"mixed\"");
DEFINE_int32(control_fd, -1, "internal: where the first process is heard");

namespace benchmarks {
namespace {

// ---- Servers.

class BlockingEcho final : public Bench::Service {
  rpc::Status Echo(rpc::ServerContext*, const Payload* request,
                   Payload* response) override {
    *response = *request;
    return rpc::Status::OK;
  }
};

class Event {
 public:
  virtual ~Event() = default;
  virtual void Proceed(bool ok) = 0;
};

// Asks for a call, has another one ask, and answers it.
template <typename Service>
class QueuedEcho final : public Event {
 public:
  QueuedEcho(Service* service, rpc::ServerCompletionQueue* queue)
      : service_(*service), queue_(*queue) {
    service->RequestEcho(&context_, &request_, &responder_, queue, queue, this);
  }
  void Proceed(bool ok) override {
    if (!ok || finished_) {
      delete this;
      return;
    }
    new QueuedEcho(&service_, &queue_);
    finished_ = true;
    responder_.Finish(request_, rpc::Status::OK, this);
  }

 private:
  Service& service_;
  rpc::ServerCompletionQueue& queue_;
  rpc::ServerContext context_;
  Payload request_;
  rpc::ServerAsyncResponseWriter<Payload> responder_{&context_};
  bool finished_ = false;
};

void TakeEvents(rpc::ServerCompletionQueue& queue) {
  void* tag;
  bool ok;
  while (queue.Next(&tag, &ok)) static_cast<Event*>(tag)->Proceed(ok);
}

// Until the parent goes. Returns the process's exit status.
int Serve() {
  ParentProcess parent(FLAGS_control_fd);
  const bool queued = FLAGS_serve != "blocking";
  const bool mixed = FLAGS_serve == "mixed";
  BlockingEcho blocking;
  Bench::AsyncService async;
  Bench::WithAsyncMethod_Echo<Bench::Service> mixture;
  rpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", rpc::InsecureServerCredentials(),
                           &port);
  builder.AddChannelArgument("verbena.device", "soft");
  std::unique_ptr<rpc::ServerCompletionQueue> queue;
  if (queued) queue = builder.AddCompletionQueue();
  if (mixed) {
    builder.RegisterService(&mixture);
  } else if (queued) {
    builder.RegisterService(&async);
  } else {
    builder.RegisterService(&blocking);
  }
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder.BuildAndStartOrStatus();
  if (!server.ok()) {
    parent.Answer(server.status());
    return 1;
  }
  std::vector<std::thread> threads;
  for (int i = 0; queued && i < FLAGS_server_threads; ++i) {
    if (mixed) {
      new QueuedEcho(&mixture, queue.get());
    } else {
      new QueuedEcho(&async, queue.get());
    }
    threads.emplace_back([&] { TakeEvents(*queue); });
  }
  parent.Answer(absl::StrCat(port));
  while (parent.ReadLine().has_value()) {
  }
  (*server)->Shutdown(absl::Now());
  if (queued) queue->Shutdown();
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// ---- Clients.

struct Figures {
  uint64_t p50_ns = 0;
  double calls_a_second = 0;
  double server_ns_a_call = 0;  // of CPU
};

Payload Request() {
  Payload request;
  request.set_data(std::string(64, 'x'));
  return request;
}

bool CallBlocking(Bench::Stub& stub, absl::Time end, LatencyHistogram& times) {
  const Payload request = Request();
  while (absl::Now() < end) {
    rpc::ClientContext context;
    Payload response;
    const absl::Time start = absl::Now();
    if (!stub.Echo(&context, request, &response).ok()) return false;
    times.Add(
        static_cast<uint64_t>(absl::ToInt64Nanoseconds(absl::Now() - start)));
  }
  return true;
}

struct QueuedCall {
  QueuedCall(Bench::Stub& stub, const Payload& request,
             rpc::CompletionQueue& queue)
      : reader(stub.AsyncEcho(&context, request, &queue)) {
    reader->Finish(&response, &status, this);
  }

  const absl::Time start = absl::Now();
  rpc::ClientContext context;
  Payload response;
  rpc::Status status;
  std::unique_ptr<rpc::ClientAsyncResponseReader<Payload>> reader;
};

bool CallByQueue(Bench::Stub& stub, absl::Time end, LatencyHistogram& times) {
  const Payload request = Request();
  rpc::CompletionQueue queue;
  for (int i = 0; i < FLAGS_in_flight; ++i)
    new QueuedCall(stub, request, queue);
  int under_way = FLAGS_in_flight;
  bool all_ok = true;
  void* tag;
  bool ok;
  while (under_way > 0 && queue.Next(&tag, &ok)) {
    const std::unique_ptr<QueuedCall> call(static_cast<QueuedCall*>(tag));
    const absl::Time now = absl::Now();
    times.Add(
        static_cast<uint64_t>(absl::ToInt64Nanoseconds(now - call->start)));
    all_ok &= call->status.ok();
    if (all_ok && now < end) {
      new QueuedCall(stub, request, queue);
    } else {
      --under_way;
    }
  }
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return all_ok;
}

std::optional<Figures> Measure(bool by_queue, Bench::Stub& stub, pid_t server) {
  const auto times = std::make_unique<LatencyHistogram>();
  const int64_t cpu_ns = ProcessCpuTimeNs(server);
  const absl::Time start = absl::Now();
  const absl::Time end = start + absl::Seconds(FLAGS_seconds);
  const bool ok = by_queue ? CallByQueue(stub, end, *times)
                           : CallBlocking(stub, end, *times);
  if (!ok) return std::nullopt;
  const auto calls = static_cast<double>(times->count());
  return Figures{
      times->PercentileNs(0.5),
      calls / absl::ToDoubleSeconds(absl::Now() - start),
      static_cast<double>(ProcessCpuTimeNs(server) - cpu_ns) / calls};
}

template <typename Value>
Value MedianOf(const std::vector<Figures>& all, Value Figures::*figure) {
  std::vector<Value> values;
  for (const Figures& each : all) values.push_back(each.*figure);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A client of a server, by one API each.
struct Pair {
  bool client_by_queue;
  size_t server;
  std::vector<Figures> figures = {};
};

constexpr const char* kServers[] = {"blocking", "mixed", "queue"};

int Run() {
  std::vector<ChildProcess> servers;
  std::vector<std::unique_ptr<Bench::Stub>> stubs;
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", "soft");
  for (const char* const api : kServers) {
    absl::StatusOr<ChildProcess> server = ChildProcess::Start(
        {absl::StrCat("--serve=", api),
         absl::StrCat("--server_threads=", FLAGS_server_threads)},
        std::nullopt);
    if (!server.ok()) {
      std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
      return 1;
    }
    stubs.push_back(Bench::NewStub(rpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", server->greeting()),
        rpc::InsecureChannelCredentials(), arguments)));
    servers.push_back(*std::move(server));
  }
  std::vector<Pair> pairs = {{false, 0}, {false, 1}, {false, 2},
                             {true, 0},  {true, 1},  {true, 2}};
  for (int round = -1; round < FLAGS_rounds; ++round) {
    for (Pair& pair : pairs) {
      const std::optional<Figures> figures =
          Measure(pair.client_by_queue, *stubs[pair.server],
                  servers[pair.server].pid());
      if (!figures.has_value()) return 1;
      if (round >= 0) pair.figures.push_back(*figures);  // the first warms up
    }
  }
  std::printf("client    server       p50 us   calls/s   server CPU us/call\n");
  for (const Pair& pair : pairs) {
    std::printf(
        "%-9s %-9s %9.1f %9.0f %20.1f\n",
        pair.client_by_queue ? "queue" : "blocking", kServers[pair.server],
        static_cast<double>(MedianOf(pair.figures, &Figures::p50_ns)) / 1e3,
        MedianOf(pair.figures, &Figures::calls_a_second),
        MedianOf(pair.figures, &Figures::server_ns_a_call) / 1e3);
  }
  return 0;
}

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return FLAGS_serve.empty() ? benchmarks::Run() : benchmarks::Serve();
}
