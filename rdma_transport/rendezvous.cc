#include "rdma_transport/rendezvous.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rdma {

Offer& OfferTable::Add(Offer offer) {
  offer.id = next_id_++;
  by_call_[offer.key].push_back(offer.id);
  bytes_ += offer.bytes();
  auto& slot = offers_[offer.id];
  slot = std::make_unique<Offer>(std::move(offer));
  return *slot;
}

Offer* OfferTable::Find(uint64_t id) {
  const auto found = offers_.find(id);
  return found == offers_.end() ? nullptr : found->second.get();
}

Offer* OfferTable::FindOldest(const OfferKey& key) {
  const auto found = by_call_.find(key);
  return found == by_call_.end() ? nullptr : Find(found->second.front());
}

const std::deque<uint64_t>& OfferTable::Unanswered(const OfferKey& key) const {
  static const auto* const none = new std::deque<uint64_t>;
  const auto found = by_call_.find(key);
  return found == by_call_.end() ? *none : found->second;
}

size_t OfferTable::unanswered() const {
  size_t count = 0;
  for (const auto& [key, ids] : by_call_) count += ids.size();
  return count;
}

void OfferTable::StopGrowing() {
  for (auto& [id, offer] : offers_) offer->StopGrowing();
}

void OfferTable::MarkAnswered(Offer& offer) {
  offer.StopGrowing();
  const auto found = by_call_.find(offer.key);
  if (found == by_call_.end()) return;
  std::deque<uint64_t>& ids = found->second;
  ids.erase(std::remove(ids.begin(), ids.end(), offer.id), ids.end());
  if (ids.empty()) by_call_.erase(found);
}

void OfferTable::Remove(uint64_t id) {
  const auto found = offers_.find(id);
  if (found == offers_.end()) return;
  MarkAnswered(*found->second);
  bytes_ -= found->second->bytes();
  offers_.erase(found);
}

void OfferTable::ReleaseWindows() {
  for (auto& [id, offer] : offers_) offer->windows.clear();
}

int64_t OfferTable::EarliestExpiryNs() const {
  int64_t earliest_ns = INT64_MAX;
  for (const auto& [id, offer] : offers_) {
    earliest_ns = std::min(earliest_ns, offer->expiry_ns);
  }
  return earliest_ns;
}

void OfferTable::Clear() {
  bytes_ = 0;
  by_call_.clear();
  offers_.clear();
}

uint64_t Offer::bytes() const {
  uint64_t bytes = 0;
  for (const rpc::Buffer& buffer : buffers) bytes += buffer.size();
  return bytes;
}

void Offer::AddChain(const rpc::BufferChain& chain) {
  const size_t first = segments.size();
  for (const rpc::Buffer& buffer : chain.buffers()) {
    const auto address = reinterpret_cast<uint64_t>(buffer.data());
    const uint32_t rkey = RegisteredMemory::MrOf(buffer)->rkey;
    if (segments.size() > first && segments.back().rkey == rkey &&
        segments.back().address + segments.back().length == address) {
      segments.back().length += buffer.size();
    } else {
      segments.push_back({address, buffer.size(), rkey});
      segment_buffers.push_back(buffers.size());
    }
    buffers.push_back(buffer);
  }
}

void Offer::AddGrowing(const rpc::Buffer& buffer,
                       std::shared_ptr<GrowingMessage> message) {
  growing = std::move(message);
  buffers.push_back(buffer);
  AddWritten();
}

bool Offer::HasMore() const {
  const uint64_t written = growing->written();
  const uint64_t total = growing->total();
  const uint64_t least = written == total ? 1 : LeastPartBytes(total);
  return written >= offered_bytes + least;
}

bool Offer::AddWritten() {
  if (!HasMore()) return false;
  const uint64_t written = growing->written();
  const rpc::Buffer& buffer = buffers.front();
  segments.push_back({reinterpret_cast<uint64_t>(buffer.data()) + offered_bytes,
                      written - offered_bytes,
                      RegisteredMemory::MrOf(buffer)->rkey});
  segment_buffers.push_back(0);
  offered_bytes = written;
  return true;
}

IncomingRead::IncomingRead(const FrameView& view, rpc::CallHandle call,
                           HeldFrame* held, MessagesBeingRead* all)
    : key_{view.fields.slot, view.fields.call_sequence},
      call_(call),
      held_(held),
      all_(all) {
  all_->Add();
  if (view.has(kMessageOffer)) AddSegments(view.message, &message_);
  message_.bytes = view.in_parts() ? view.message_total : message_.offered;
  if (view.has(kAttachmentOffer)) AddSegments(view.attachment, &attachment_);
  attachment_.bytes = attachment_.offered;
}

IncomingRead::~IncomingRead() {
  all_->Remove();
  if (arriving_ == nullptr) return;
  arriving_->End();
  arriving_->EndStoring();
  all_->RemoveArriving();
}

void IncomingRead::ParseWhatArrives(std::shared_ptr<ArrivingMessage> arriving) {
  arriving_ = std::move(arriving);
  all_->AddArriving();
}

void IncomingRead::AddSegments(absl::Span<const std::byte> encoded,
                               Part* part) {
  for (size_t at = 0; at < encoded.size(); at += kSegmentBytes) {
    const Segment segment = DecodeSegment(encoded.data() + at);
    if (done_rkey_ == 0) done_rkey_ = segment.rkey;
    part->segments.push_back(segment);
    part->offered += segment.length;
  }
}

bool IncomingRead::offers_too_much() const {
  return message_.offered > message_.bytes ||
         message_.segments.size() > kMaxSegmentsInParts;
}

bool IncomingRead::AddPart(absl::Span<const std::byte> encoded) {
  const uint64_t before = message_.offered;
  AddSegments(encoded, &message_);
  const bool too_short =
      waits_for_parts() &&
      message_.offered - before < LeastPartBytes(message_.bytes);
  return !too_short && !offers_too_much();
}

absl::Status IncomingRead::Allocate(RegisteredMemory& memory,
                                    JointMemory* joint) {
  for (Part* part : {&message_, &attachment_}) {
    if (part->bytes == 0 || !part->buffer.empty()) continue;
    if (part == &attachment_ && joint != nullptr && may_be_joint()) {
      std::optional<rpc::Buffer> buffer = joint->Allocate(part->bytes);
      if (buffer.has_value()) {
        part->buffer = *std::move(buffer);
        continue;
      }
    }
    absl::StatusOr<rpc::Buffer> buffer = memory.Allocate(part->bytes);
    if (!buffer.ok()) {
      // All or nothing: two that wait would hold each other up.
      message_.buffer.reset();
      return buffer.status();
    }
    part->buffer = *std::move(buffer);
  }
  return absl::OkStatus();
}

ReadChunk IncomingRead::NextChunk(uint32_t limit) {
  Part& part = message_.HasChunk() ? message_ : attachment_;
  const Segment& segment = part.segments[part.current];
  const bool arrives = &part == &message_ && arriving_ != nullptr;
  const uint64_t most = std::min<uint64_t>(limit, segment.length - part.at);
  ReadChunk chunk;
  if (arrives) {
    const ArrivingMessage::Room room = arriving_->NextRoom();
    chunk.to = room.to;
    chunk.lkey = room.lkey;
    chunk.bytes = static_cast<uint32_t>(std::min(most, room.bytes));
    chunk.whole_bytes = room.whole_bytes;
    arriving_->AddChunk(chunk.bytes);
  } else {
    chunk.to = part.buffer.mutable_data() + part.read_at;
    chunk.lkey = RegisteredMemory::LkeyOf(part.buffer);
    chunk.bytes = static_cast<uint32_t>(most);
    chunk.whole_bytes = part.bytes;
  }
  chunk.remote_address = segment.address + part.at;
  chunk.rkey = segment.rkey;
  part.at += chunk.bytes;
  part.read_at += chunk.bytes;
  if (part.at == segment.length) {
    part.at = 0;
    ++part.current;
  }
  ++outstanding_;
  return chunk;
}

void IncomingRead::ChunkDone() {
  --outstanding_;
  if (arriving_ != nullptr) arriving_->ChunkCame();
}

void IncomingRead::Abandon() {
  abandoned_ = true;
  held_ = nullptr;
  if (arriving_ != nullptr) arriving_->End();
}

void IncomingRead::MoveInto(rpc::IncomingFrame& frame) {
  if (message_.bytes > 0) {
    frame.message = rpc::BufferChain(std::move(message_.buffer));
  }
  if (attachment_.bytes > 0) {
    frame.attachment = rpc::BufferChain(std::move(attachment_.buffer));
  }
}

}  // namespace rdma
