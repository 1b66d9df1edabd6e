#include "rpc/server_context.h"

namespace rpc {

bool ServerContextBase::IsCancelled() const {
  return call_ == nullptr ? cancelled_ : call_->IsCancelled();
}

void ServerContextBase::TryCancel() const {
  if (call_ != nullptr) call_->Cancel();
}

ServerContextBase::SentMetadata& ServerContextBase::sent() {
  if (sent_ == nullptr) sent_ = std::make_unique<SentMetadata>();
  return *sent_;
}

void ServerContextBase::AddInitialMetadata(const std::string& key,
                                           const std::string& value) {
  sent().initial.emplace(key, value);
}

void ServerContextBase::AddTrailingMetadata(const std::string& key,
                                            const std::string& value) {
  sent().trailing.emplace(key, value);
}

void ServerContextBase::set_compression_algorithm(
    CompressionAlgorithm algorithm) {
  sent().compression_algorithm = algorithm;
}

CompressionAlgorithm ServerContextBase::compression_algorithm() const {
  return sent_ == nullptr ? COMPRESS_NONE : sent_->compression_algorithm;
}

void ServerContextBase::set_compression_level(CompressionLevel level) {
  sent().compression_level = level;
}

CompressionLevel ServerContextBase::compression_level() const {
  return compression_level_set() ? *sent_->compression_level
                                 : COMPRESS_LEVEL_NONE;
}

bool ServerContextBase::compression_level_set() const {
  return sent_ != nullptr && sent_->compression_level.has_value();
}

void ServerContextBase::SetLoadReportingCosts(
    const std::vector<std::string>& cost_data) {
  for (const std::string& cost : cost_data) {
    AddTrailingMetadata("lb-cost-bin", cost);
  }
}

absl::StatusOr<Buffer> ServerContextBase::AllocateBuffer(size_t bytes) {
  if (call_ == nullptr) return Buffer::FromHeap(bytes);
  return call_->AllocateBuffer(bytes);
}

const ReceivedMetadataMap& ServerContextBase::MetadataOfOrigin() const {
  const internal::ReceivedMetadata* const from = origin();
  return from == nullptr ? internal::ReceivedMetadata::Empty()
                         : from->initial();
}

string_ref ServerContextBase::ExperimentalGetAuthority() const {
  if (received_ != nullptr) return received_->authority();
  const internal::ReceivedMetadata* const from = origin();
  return from == nullptr ? string_ref() : from->authority();
}

std::string ServerContextBase::peer() const {
  return call_ == nullptr ? std::string() : call_->peer();
}

}  // namespace rpc
