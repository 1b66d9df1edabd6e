#include "examples/fleet/serve.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <iostream>
#include <string>
#include <utility>

namespace fleet {
namespace {

constexpr std::chrono::seconds kDrainTime(5);

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

std::unique_ptr<rpc::Server> Start(int argc, char** argv,
                                   rpc::ServerBuilder* builder) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " HOST:PORT\n";
    return nullptr;
  }
  // The threads of the server inherit this: signals wait for WaitForSignal.
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const std::string address = argv[1];
  int port = 0;
  builder->AddListeningPort(address, rpc::InsecureServerCredentials(), &port);
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder->BuildAndStartOrStatus();
  if (!server.ok()) {
    std::cerr << address << ": " << server.status() << '\n';
    return nullptr;
  }
  std::cout << "listening on " << address.substr(0, address.rfind(':') + 1)
            << port << std::endl;
  return *std::move(server);
}

void WaitForSignal() {
  const sigset_t signals = EndSignals();
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
}

void Stop(rpc::Server* server) {
  server->Shutdown(std::chrono::system_clock::now() + kDrainTime);
}

}  // namespace fleet
