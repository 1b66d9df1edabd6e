// What the peers of contexts have in common.
//
// Thread rule: as the context.
#ifndef VERBENA_RPC_TEST_RECEIVED_PAIR_H_
#define VERBENA_RPC_TEST_RECEIVED_PAIR_H_

#include <memory>
#include <string>

#include "rpc/internal/received_metadata.h"

namespace rpc::testing {

// As if it had come.
void AddReceivedPair(internal::ReceivedMetadata::From from,
                     const std::string& key, const std::string& value,
                     std::unique_ptr<internal::ReceivedMetadata>& received);

}  // namespace rpc::testing

#endif  // VERBENA_RPC_TEST_RECEIVED_PAIR_H_
