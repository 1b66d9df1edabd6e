// The key-value service of kv.proto over a Storage: the server without its
// main().
//
//   kv::Storage storage(options);
//   kv::KeyValueService service(&storage);
//   builder.RegisterService(&service);
//
// Thread rule: as any service's, handlers run on several threads at once.
#ifndef VERBENA_EXAMPLES_KV_KV_SERVICE_H_
#define VERBENA_EXAMPLES_KV_KV_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "examples/kv/kv.rpc.pb.h"
#include "examples/kv/storage.h"
#include "rpc/rpc.h"

namespace kv {

// What the service cannot know by itself, for Stats.
struct TransportFacts {
  std::string device;
  uint64_t messages_eager = 0;
  uint64_t messages_rendezvous = 0;
};

class KeyValueService final : public KeyValue::Service {
 public:
  // `storage` must outlive the service. `transport_facts` is asked by every
  // Stats call, on any thread; empty: Stats says nothing of the transport.
  explicit KeyValueService(
      Storage* storage, std::function<TransportFacts()> transport_facts = {});

  rpc::Status Get(rpc::ServerContext* context, const GetRequest* request,
                  GetResponse* response) override;
  rpc::Status Put(rpc::ServerContext* context, const PutRequest* request,
                  PutResponse* response) override;
  rpc::Status Delete(rpc::ServerContext* context, const DeleteRequest* request,
                     DeleteResponse* response) override;
  rpc::Status CompareAndSwap(rpc::ServerContext* context,
                             const CompareAndSwapRequest* request,
                             CompareAndSwapResponse* response) override;
  rpc::Status List(rpc::ServerContext* context, const ListRequest* request,
                   ListResponse* response) override;
  rpc::Status Stats(rpc::ServerContext* context, const StatsRequest* request,
                    StatsResponse* response) override;

 private:
  Storage& storage_;
  const std::function<TransportFacts()> transport_facts_;
  const absl::Time start_;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_KV_SERVICE_H_
