// The key-value service of kv.proto over a Storage: the server without its
// main().
//
//   kv::Storage storage(options);
//   kv::KeyValueService service(&storage);
//   builder.RegisterService(&service);
//
// Watch is served by the callback API, so that those who watch cost no thread;
// the others are blocking.
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
#include "examples/kv/watchers.h"
#include "rpc/rpc.h"

namespace kv {

// What the service cannot know by itself, for Stats.
struct TransportFacts {
  std::string device;
  uint64_t messages_eager = 0;
  uint64_t messages_rendezvous = 0;
};

class KeyValueService final
    : public KeyValue::WithCallbackMethod_Watch<KeyValue::Service> {
 public:
  // `storage` must outlive the service, which observes it. `transport_facts` is
  // asked by every Stats call, on any thread; empty: Stats says nothing of the
  // transport.
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
  rpc::Status Load(rpc::ServerContext* context,
                   rpc::ServerReader<LoadRequest>* reader,
                   LoadSummary* summary) override;
  rpc::ServerWriteReactor<WatchEvent>* Watch(
      rpc::CallbackServerContext* context,
      const WatchRequest* request) override;
  rpc::Status Stats(rpc::ServerContext* context, const StatsRequest* request,
                    StatsResponse* response) override;

  // Ends calls of Watch, which would hold up Server::Shutdown until its
  // deadline.
  void EndWatches() { watchers_.EndAll(); }

 private:
  Storage& storage_;
  Watchers watchers_;
  const std::function<TransportFacts()> transport_facts_;
  const absl::Time start_;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_KV_SERVICE_H_
