// Shows the RDMA devices of this machine, what Verbena's transport would do
// with them, and what is wrong with the set-up. See docs/hardware.md.
#include <getopt.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "rdma_transport/address.h"
#include "rdma_transport/hardware/hardware_provider.h"
#include "rdma_transport/software/software_provider.h"
#include "tools/rdma_info/address_choices.h"
#include "tools/rdma_info/devices.h"
#include "tools/rdma_info/diagnose.h"
#include "tools/rdma_info/json_report.h"
#include "tools/rdma_info/machine.h"
#include "tools/rdma_info/netdevs.h"
#include "tools/rdma_info/system.h"
#include "tools/rdma_info/text_report.h"

namespace {

// Part of its interface: scripts rely on them.
enum ExitStatus : int {
  kFine = 0,   // with RDMA hardware, or without any: soft0 is always there
  kWrong = 1,  // hardware that is there cannot be used, or the address
  kUsage = 2,
};

// A neighbour that does not answer is given up by the kernel after 3 s.
constexpr absl::Duration kAddressTimeout = absl::Seconds(5);

constexpr char kUsageText[] =
    R"(Shows the RDMA devices of this machine: what they can do, what Verbena's
transport takes of that, and what is wrong with the set-up and how to mend it.

    rdma_info [--address=HOST:PORT] [--json] [--require_hardware]

    --address=HOST:PORT  also which device would be used for that address, and
                         why, to connect to it and to listen on it;
                         rdma://HOST:PORT is the same
    --json               one JSON object instead of text; its fields are
                         described in tools/rdma_info/json_report.h
    --require_hardware   a machine without RDMA hardware, or an address that
                         hardware does not lead to, is an error

Changes nothing, and needs no privileges.

Exit status:
    0    nothing is wrong: RDMA hardware is ready, or there is none and the
         software device soft0 is used; with --address, some device leads there
    1    RDMA hardware cannot be used, or no device leads to the address: the
         errors that are shown say why and what to do
    2    wrong arguments
)";

struct Arguments {
  std::optional<std::string> address;
  rdma::HostPort host_port;  // what `address` says
  bool json = false;
  bool require_hardware = false;
  bool help = false;
};

void PrintError(const std::string& text) {
  std::fprintf(stderr, "rdma_info: %s\n", text.c_str());
}

// Nothing where they are wrong, which has been said then.
std::optional<Arguments> ParseArguments(int argc, char** argv) {
  static constexpr option kOptions[] = {
      {"address", required_argument, nullptr, 'a'},
      {"json", no_argument, nullptr, 'j'},
      {"require_hardware", no_argument, nullptr, 'r'},
      {"help", no_argument, nullptr, 'h'},
      {}};
  Arguments arguments;
  for (int c; (c = getopt_long(argc, argv, "h", kOptions, nullptr)) != -1;) {
    switch (c) {
      case 'a':
        arguments.address = optarg;
        break;
      case 'j':
        arguments.json = true;
        break;
      case 'r':
        arguments.require_hardware = true;
        break;
      case 'h':
        arguments.help = true;
        break;
      default:  // getopt_long has said what is wrong
        return std::nullopt;
    }
  }
  if (optind < argc) {
    PrintError(std::string("unexpected argument '") + argv[optind] + "'");
    return std::nullopt;
  }
  if (arguments.address.has_value()) {
    auto host_port = rdma::ParseAddress(*arguments.address);
    if (!host_port.ok()) {
      PrintError(std::string(host_port.status().message()));
      return std::nullopt;
    }
    arguments.host_port = *std::move(host_port);
  }
  return arguments;
}

rdma_info::Machine Collect(const Arguments& arguments) {
  const std::unique_ptr<rdma::Provider> hardware = rdma::MakeHardwareProvider();
  const std::unique_ptr<rdma::Provider> software = rdma::MakeSoftwareProvider();
  const rdma_info::Roots roots;
  rdma_info::Machine machine;
  machine.system = rdma_info::CollectSystem(roots);
  machine.devices =
      rdma_info::CollectDevices(roots, hardware.get(), software.get());
  machine.netdevs = rdma_info::CollectNetdevs(roots);
  if (arguments.address.has_value()) {
    machine.address = rdma_info::CollectAddressChoices(
        *arguments.address, arguments.host_port, hardware.get(), software.get(),
        kAddressTimeout);
  }
  return machine;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = ParseArguments(argc, argv);
  if (!arguments.has_value()) {
    PrintError("see --help");
    return kUsage;
  }
  if (arguments->help) {
    std::fputs(kUsageText, stdout);
    return kFine;
  }
  const rdma_info::Machine machine = Collect(*arguments);
  const rdma_info::Diagnosis diagnosis = rdma_info::Diagnose(
      machine, {.require_hardware = arguments->require_hardware});
  const std::string report = arguments->json
                                 ? rdma_info::JsonReport(machine, diagnosis)
                                 : rdma_info::TextReport(machine, diagnosis);
  std::fputs(report.c_str(), stdout);
  return diagnosis.HasErrors() ? kWrong : kFine;
}
