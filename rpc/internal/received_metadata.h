// Metadata and status text of one call, as they came in header blocks.
//
// Owned by a context. Created when the first header block arrives: a call
// without metadata has none.
#ifndef VERBENA_RPC_INTERNAL_RECEIVED_METADATA_H_
#define VERBENA_RPC_INTERNAL_RECEIVED_METADATA_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "rpc/internal/header_block.h"
#include "rpc/metadata.h"
#include "rpc/status.h"

namespace rpc::internal {

// Thread rule: one thread at a time.
class ReceivedMetadata {
 public:
  // Who sent a block decides what may be in it.
  enum class From { kClient, kServer, kServerEnd };

  // Copies the block and adds what it holds. `first`: it came with the first
  // frame of its direction; only that may have initial metadata, which the user
  // may be reading by the next. INTERNAL: it is malformed, or holds an illegal
  // entry. RESOURCE_EXHAUSTED: the metadata of one kind is
  // larger than `max_metadata_bytes`; the text names both sizes. On an error
  // nothing more is to be added.
  Status Add(absl::Span<const std::byte> block, From from, bool first,
             size_t max_metadata_bytes);

  // Adds what the client's channel says with each of its calls, before what the
  // call itself says.
  void AddOrigin(std::shared_ptr<const ReceivedMetadata> origin);

  const ReceivedMetadataMap& initial() const { return initial_; }
  const ReceivedMetadataMap& trailing() const { return trailing_; }
  // For interceptors.
  ReceivedMetadataMap* mutable_initial() { return &initial_; }
  ReceivedMetadataMap* mutable_trailing() { return &trailing_; }
  std::string_view authority() const { return authority_; }  // the client's
  // See CallSink::OnPeer.
  void set_peer(std::string_view peer) { peer_ = std::string(peer); }
  const std::string& peer() const { return peer_; }
  std::string_view status_message() const { return status_message_; }
  std::string_view status_details() const { return status_details_; }

  // An empty map, for contexts without metadata.
  static const ReceivedMetadataMap& Empty();

 private:
  Status AddEntry(const HeaderEntry& entry, From from, bool first);
  void AddPair(const HeaderEntry& entry, ReceivedMetadataMap& map,
               size_t& bytes);

  // What the views point into.
  std::list<std::string> blocks_;
  std::shared_ptr<const ReceivedMetadata> origin_;
  ReceivedMetadataMap initial_;
  ReceivedMetadataMap trailing_;
  size_t initial_bytes_ = 0;
  size_t trailing_bytes_ = 0;
  std::string_view authority_;
  std::string peer_;
  bool has_status_message_ = false;
  bool has_status_details_ = false;
  std::string_view status_message_;
  std::string_view status_details_;
};

// The status that a client gives for a server's last frame: `code` with the
// text and details of its header block. Codes that gRPC does not know become
// UNKNOWN.
Status ReceivedStatus(uint32_t code, const ReceivedMetadata* metadata);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_RECEIVED_METADATA_H_
