// Stands in for gRPC's header of this name: functions of C that take and give
// what the enumerations say. Nobody calls them.
#ifndef GRPC_GRPC_H
#define GRPC_GRPC_H

#include <grpc/impl/codegen/compression_types.h>
#include <grpc/impl/codegen/connectivity_state.h>

extern "C" {
grpc_connectivity_state grpc_channel_check_connectivity_state(void* channel,
                                                              int try_connect);
int grpc_compression_algorithm_name(grpc_compression_algorithm algorithm,
                                    const char** name);
grpc_compression_algorithm grpc_compression_algorithm_for_level(
    grpc_compression_level level, unsigned accepted);
}

#endif  // GRPC_GRPC_H
