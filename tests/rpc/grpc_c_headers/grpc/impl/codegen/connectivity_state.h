// Stands in for gRPC's header of this name: an enumeration of the same name,
// with the same constants, behind the same guard.
#ifndef GRPC_IMPL_CODEGEN_CONNECTIVITY_STATE_H
#define GRPC_IMPL_CODEGEN_CONNECTIVITY_STATE_H

typedef enum {
  GRPC_CHANNEL_IDLE,
  GRPC_CHANNEL_CONNECTING,
  GRPC_CHANNEL_READY,
  GRPC_CHANNEL_TRANSIENT_FAILURE,
  GRPC_CHANNEL_SHUTDOWN
} grpc_connectivity_state;

#endif  // GRPC_IMPL_CODEGEN_CONNECTIVITY_STATE_H
