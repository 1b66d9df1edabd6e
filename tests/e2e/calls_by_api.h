// Calls of the methods of Parcels, of each kind, by each of the client's APIs:
// what a test says of calls is to hold for all of them.
//
//   const Exchanged<Parcel> result =
//       Call(ClientApi::kCallback, RpcType::BIDI_STREAMING, channel, &context);
//   EXPECT_OK(result.status);
//
// Two requests go where the client streams, two responses come where the server
// does, each as soon as it may.
//
// Thread rule: blocks until the call is over; no state.
#ifndef VERBENA_TESTS_E2E_CALLS_BY_API_H_
#define VERBENA_TESTS_E2E_CALLS_BY_API_H_

#include <memory>
#include <string>

#include "rpc/rpc.h"
#include "tests/e2e/parcels.h"

namespace e2e {

enum class ClientApi { kBlocking, kCallback, kQueue, kCoroutine, kGeneric };

inline constexpr ClientApi kAllClientApis[] = {
    ClientApi::kBlocking, ClientApi::kCallback, ClientApi::kQueue,
    ClientApi::kCoroutine, ClientApi::kGeneric};

std::string NameOf(ClientApi api);

Exchanged<Parcel> Call(ClientApi api, RpcType type,
                       const std::shared_ptr<rpc::Channel>& channel,
                       rpc::ClientContext* context);

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_CALLS_BY_API_H_
