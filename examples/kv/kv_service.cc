#include "examples/kv/kv_service.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "examples/kv/value_field.h"
#include "examples/kv/value_placement.h"

namespace kv {
namespace {

// The value of a request, in the memory where it is to be kept.
template <typename Request>
absl::StatusOr<rpc::BufferChain> TakeValue(rpc::ServerContext* context,
                                           const Request& request,
                                           rpc::BufferChain attachment) {
  const absl::Status checked = CheckAttachment(request, attachment);
  if (!checked.ok()) return checked;
  if (!request.has_attached_bytes()) {
    return PlaceInlineValue(request.inline_value());
  }
  return PlaceAttachedValue(std::move(attachment), [context](size_t bytes) {
    return context->AllocateBuffer(bytes);
  });
}

}  // namespace

KeyValueService::KeyValueService(
    Storage* storage, std::function<TransportFacts()> transport_facts)
    : storage_(*storage),
      watchers_(storage),
      transport_facts_(std::move(transport_facts)),
      start_(absl::Now()) {}

rpc::Status KeyValueService::Get(rpc::ServerContext* context,
                                 const GetRequest* request,
                                 GetResponse* response) {
  std::optional<StoredValue> value = storage_.Get(request->key());
  if (!value.has_value()) {
    return rpc::Status(rpc::StatusCode::NOT_FOUND, "no such key");
  }
  response->set_version(value->version);
  context->set_attachment(SetValue(std::move(value->bytes), response));
  return rpc::Status::OK;
}

rpc::Status KeyValueService::Put(rpc::ServerContext* context,
                                 const PutRequest* request,
                                 PutResponse* response) {
  absl::StatusOr<rpc::BufferChain> value =
      TakeValue(context, *request, std::move(context->attachment()));
  if (!value.ok()) return value.status();
  const absl::StatusOr<uint64_t> version =
      storage_.Put(request->key(), *std::move(value));
  if (!version.ok()) return version.status();
  response->set_version(*version);
  return rpc::Status::OK;
}

rpc::Status KeyValueService::Delete(rpc::ServerContext* context,
                                    const DeleteRequest* request,
                                    DeleteResponse* response) {
  response->set_deleted(storage_.Delete(request->key()));
  return rpc::Status::OK;
}

rpc::Status KeyValueService::CompareAndSwap(
    rpc::ServerContext* context, const CompareAndSwapRequest* request,
    CompareAndSwapResponse* response) {
  absl::StatusOr<rpc::BufferChain> value =
      TakeValue(context, *request, std::move(context->attachment()));
  if (!value.ok()) return value.status();
  const absl::StatusOr<SwapResult> result = storage_.CompareAndSwap(
      request->key(), request->expected_version(), *std::move(value));
  if (!result.ok()) return result.status();
  response->set_swapped(result->swapped);
  response->set_version(result->version);
  return rpc::Status::OK;
}

rpc::Status KeyValueService::List(rpc::ServerContext* context,
                                  const ListRequest* request,
                                  ListResponse* response) {
  absl::StatusOr<ListPage> page = storage_.List(
      request->prefix(), request->page_size(), request->page_token());
  if (!page.ok()) return page.status();
  response->mutable_entries()->Reserve(static_cast<int>(page->entries.size()));
  for (ListEntry& entry : page->entries) {
    ListResponse::Entry* added = response->add_entries();
    added->set_key(std::move(entry.key));
    added->set_value_bytes(entry.value_bytes);
    added->set_version(entry.version);
  }
  response->set_next_page_token(std::move(page->next_page_token));
  return rpc::Status::OK;
}

rpc::Status KeyValueService::Load(rpc::ServerContext* context,
                                  rpc::ServerReader<LoadRequest>* reader,
                                  LoadSummary* summary) {
  LoadRequest request;
  rpc::BufferChain attachment;
  while (reader->Read(&request, &attachment)) {
    absl::StatusOr<rpc::BufferChain> value =
        TakeValue(context, request, std::move(attachment));
    if (!value.ok()) return value.status();
    const uint64_t bytes = value->size();
    const absl::StatusOr<uint64_t> version =
        storage_.Put(request.key(), *std::move(value));
    if (!version.ok()) return version.status();
    summary->set_keys(summary->keys() + 1);
    summary->set_value_bytes(summary->value_bytes() + bytes);
  }
  return rpc::Status::OK;
}

rpc::ServerWriteReactor<WatchEvent>* KeyValueService::Watch(
    rpc::CallbackServerContext* context, const WatchRequest* request) {
  return watchers_.Start(*request);
}

rpc::Status KeyValueService::Stats(rpc::ServerContext* context,
                                   const StatsRequest* request,
                                   StatsResponse* response) {
  const StorageStats stats = storage_.stats();
  response->set_keys(stats.keys);
  response->set_value_bytes(stats.value_bytes);
  response->set_memory_used_bytes(stats.memory_used_bytes);
  response->set_memory_limit_bytes(stats.memory_limit_bytes);
  response->set_gets(stats.gets);
  response->set_hits(stats.hits);
  response->set_puts(stats.puts);
  response->set_deletes(stats.deletes);
  response->set_compare_and_swaps(stats.compare_and_swaps);
  response->set_lists(stats.lists);
  response->set_rejected_for_memory(stats.rejected_for_memory);
  response->set_uptime_ms(
      static_cast<uint64_t>(absl::ToInt64Milliseconds(absl::Now() - start_)));
  if (transport_facts_) {
    const TransportFacts facts = transport_facts_();
    response->set_device(facts.device);
    response->set_messages_eager(facts.messages_eager);
    response->set_messages_rendezvous(facts.messages_rendezvous);
  }
  return rpc::Status::OK;
}

}  // namespace kv
