// gRPC's words for compression, of which there is none here: a message takes
// longer to compress than to copy, and is copied once at most. Programs that
// ask for it run as they are, and their messages are sent as they are.
//
//   context.set_compression_algorithm(rpc::COMPRESS_GZIP);  // no effect
//
// Thread rule: none is needed.
#ifndef VERBENA_RPC_COMPRESSION_H_
#define VERBENA_RPC_COMPRESSION_H_

namespace rpc {

enum CompressionAlgorithm {
  COMPRESS_NONE = 0,
  COMPRESS_DEFLATE = 1,
  COMPRESS_GZIP = 2,
  COMPRESS_ALGORITHMS_COUNT = 3,
};

enum CompressionLevel {
  COMPRESS_LEVEL_NONE = 0,
  COMPRESS_LEVEL_LOW = 1,
  COMPRESS_LEVEL_MED = 2,
  COMPRESS_LEVEL_HIGH = 3,
  COMPRESS_LEVEL_COUNT = 4,
};

}  // namespace rpc

#endif  // VERBENA_RPC_COMPRESSION_H_
