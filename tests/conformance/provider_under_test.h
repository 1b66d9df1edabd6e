// What the conformance suite is told about the provider that it runs on.
//
// The suite holds a device to the specification of verbs (the man pages of
// libibverbs, and the InfiniBand architecture specification where they are
// silent). It is compiled once and linked with one definition of
// `TheProviderUnderTest()`, which says how to make the provider, where its
// devices answer, and in what the device is known to depart from the
// specification. See conformance.bzl for how to add a provider.
//
//   const ProviderUnderTest& TheProviderUnderTest() {
//     static const auto* provider = new ProviderUnderTest{
//         .name = "software", .make = [] { return MakeSoftwareProvider(); }};
//     return *provider;
//   }
//
// Thread rule: constant after the first call.
#ifndef VERBENA_TESTS_CONFORMANCE_PROVIDER_UNDER_TEST_H_
#define VERBENA_TESTS_CONFORMANCE_PROVIDER_UNDER_TEST_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rdma_transport/provider/provider.h"

namespace rdma::conformance {

// The results that the specification leaves open, or that a device is known to
// give otherwise. Every default is what the specification says.
struct Deviations {
  // An lkey that names no MR of the QP's PD: of a piece to send or write from,
  // and of one to read into.
  ibv_wc_status wrong_source_lkey = IBV_WC_LOC_PROT_ERR;
  ibv_wc_status wrong_target_lkey = IBV_WC_LOC_PROT_ERR;

  // A receive into memory that was deregistered since it was posted.
  ibv_wc_status receive_wrong_lkey = IBV_WC_LOC_PROT_ERR;

  // A receive into memory that may not be written locally.
  ibv_wc_status receive_not_writable = IBV_WC_LOC_PROT_ERR;

  // An access that the responder's QP does not allow (qp_access_flags).
  ibv_wc_status not_allowed_by_the_qp = IBV_WC_REM_INV_REQ_ERR;

  // A message longer than the posted receive, at either end.
  ibv_wc_status receive_too_small_responder = IBV_WC_LOC_LEN_ERR;
  ibv_wc_status receive_too_small_requester = IBV_WC_REM_INV_REQ_ERR;

  // An atomic on an address that is no multiple of 8, where posting takes it.
  ibv_wc_status atomic_unaligned = IBV_WC_REM_INV_REQ_ERR;

  // IBV_WR_LOCAL_INV of a key that is not valid: a memory management error.
  ibv_wc_status local_invalidate_wrong_key = IBV_WC_MW_BIND_ERR;

  // SEND_WITH_INV of a key that is not valid, at the responder. The requester
  // may have its acknowledgement already, so both outcomes are right there.
  ibv_wc_status invalidate_wrong_key_responder = IBV_WC_REM_INV_REQ_ERR;

  // What posting more inline data than the QP takes returns.
  int inline_too_long_errno = EINVAL;

  // Whether a QP to which a window is bound can be destroyed; rxe waits 50 s
  // for the window and then gives up.
  bool destroys_qps_with_windows = true;

  // Whether accesses through a window are held to the window's bounds and not
  // only to its MR's.
  bool enforces_window_bounds = true;

  // Whether a bind is refused whose key has another index than the window's.
  bool checks_window_key_index = true;

  // Whether a window is bound to regions of its own PD only.
  bool checks_window_domain = true;

  // Whether a message longer than the specification allows (2 GiB) is refused
  // rather than cut down to what is left of its length in 32 bits.
  bool checks_message_length = true;

  // Whether a receive that invalidated a key carries IBV_WC_WITH_INV.
  bool flags_invalidation = true;

  // Whether a full send queue refuses with ENOMEM until a completion is polled.
  bool send_queue_fills = true;

  // Whether receives posted to a QP in ERR are flushed, as sends are.
  bool flushes_receives_posted_in_error = true;

  // Whether what a QP in ERR had is flushed within four times `silence`. Of a
  // device that does so on a thread that waits for a CPU this is not said.
  bool flushes_soon = true;

  // Whether a long copy of one QP lets another QP's small message pass.
  bool interleaves_connections = true;

  // Whether a CQ armed for solicited events alone wakes for an error.
  bool solicited_wakes_on_error = true;

  // Whether a QP that leaves its SRQ reports IBV_EVENT_QP_LAST_WQE_REACHED.
  bool reports_last_wqe = true;

  // Whether a QP in SQD finishes what it has begun and, back in RTS, goes on
  // with what was posted meanwhile. rxe may do the latter only at the next
  // post.
  bool goes_on_after_draining = true;

  // Whether a fenced message that finds no receive is sent again though a READ
  // was posted behind it. rxe begins the READ while the receiver is not ready,
  // and the fence then waits for that, which stands behind it.
  bool resends_fenced_requests = true;

  // Whether max_recv_wr, max_wr, cqe, ... are enforced as CreateQp and its like
  // returned them. A device that rounds up silently takes more.
  bool exact_queue_depths = true;

  // Whether memory that AllocateMemory did not make can be registered.
  bool registers_any_memory = true;
};

struct ProviderUnderTest {
  std::string name;
  std::function<std::unique_ptr<Provider>()> make;

  // Names for Provider::Open; empty takes the first one listed. The two ends
  // may be two devices, as rxe0 and rxe1 on a veth pair.
  std::string client_device;
  std::string server_device;

  // Numeric addresses that reach the server's device; loopback is not an
  // address of rxe. The IPv6 one is empty where there is none.
  std::string server_address = "127.0.0.1";
  std::string server_address_v6 = "::1";

  // One that reaches the client's device, for tests that have both ends on it.
  // Empty where the two ends are one device anyhow.
  std::string client_address;

  // How long a step that must happen may take before the test calls it lost.
  // Generous: it is only ever waited out by a test that fails.
  absl::Duration patience = absl::Seconds(20);

  // How long nothing must happen before the test believes that nothing will.
  absl::Duration silence = absl::Milliseconds(15);

  // The largest messages and the number of connections worth trying; a device
  // under emulation copies a megabyte in the time that another copies a
  // gigabyte.
  size_t largest_message_bytes = size_t{64} << 20;
  int many_connections = 100;
  int many_rounds = 20000;  // of a message there and a message back

  Deviations deviations;
};

// The provider that this binary was linked for.
const ProviderUnderTest& TheProviderUnderTest();

// Where a server listens that is on the client's device, too.
inline const std::string& OneDeviceAddress() {
  const ProviderUnderTest& provider = TheProviderUnderTest();
  return provider.client_address.empty() ? provider.server_address
                                         : provider.client_address;
}

// One way of arranging the two ends; every test runs in each.
struct Variant {
  std::string name;
  bool one_device = false;  // both ends on one opened device
  bool single_threaded_queues = true;
};
void PrintTo(const Variant& variant, std::ostream* os);

// Two devices; one device; two devices with queues that threads may share.
std::vector<Variant> AllVariants();

// For tests of one thing that the arrangement does not touch.
std::vector<Variant> OneVariant();

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_PROVIDER_UNDER_TEST_H_
