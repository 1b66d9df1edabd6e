// The key-value service and a client of it in one process, over the loopback
// transport.
//
//   LoopbackStore store({.memory_limit_bytes = 1 << 20}, {.threads = 3});
//   absl::StatusOr<PutResponse> put = store.client().Put("key", value);
#ifndef VERBENA_TESTS_KV_LOOPBACK_STORE_H_
#define VERBENA_TESTS_KV_LOOPBACK_STORE_H_

#include <memory>

#include "examples/kv/client.h"
#include "examples/kv/kv.rpc.pb.h"
#include "examples/kv/kv_service.h"
#include "examples/kv/storage.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/loopback_transport.h"

namespace kv {

class LoopbackStore {
 public:
  LoopbackStore(const StorageOptions& storage,
                const rpc::testing::LoopbackOptions& network)
      : storage_(storage), network_(network), service_(&storage_) {
    rpc::ServerBuilder builder;
    builder.AddListeningPort(network_.address(),
                             rpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    client_ =
        std::make_unique<Client>(ClientOptions{.address = network_.address()});
    stub_ = KeyValue::NewStub(rpc::CreateChannel(
        network_.address(), rpc::InsecureChannelCredentials()));
  }

  Storage& storage() { return storage_; }
  rpc::testing::LoopbackNetwork& network() { return network_; }
  KeyValueService& service() { return service_; }
  rpc::Server& server() { return *server_; }
  Client& client() { return *client_; }
  // For calls that the client does not make so.
  KeyValue::Stub& stub() { return *stub_; }

 private:
  Storage storage_;
  rpc::testing::LoopbackNetwork network_;
  KeyValueService service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<KeyValue::Stub> stub_;
};

}  // namespace kv

#endif  // VERBENA_TESTS_KV_LOOPBACK_STORE_H_
