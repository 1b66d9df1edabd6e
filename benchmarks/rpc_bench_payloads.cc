#include "benchmarks/rpc_bench_payloads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/test_pattern.h"

namespace benchmarks {
namespace {

// Beyond this many, payloads are so small that taking turns changes nothing.
constexpr uint64_t kMostPayloads = 1 << 16;

absl::Status WrongAnswer(size_t expected_bytes, uint64_t bytes) {
  return absl::DataLossError(absl::StrCat(
      "wrong answer: ", expected_bytes, " bytes were sent, ", bytes,
      bytes == expected_bytes ? " came, with other contents" : " came"));
}

}  // namespace

absl::StatusOr<Payloads> Payloads::Create(const Options& options,
                                          rpc::Channel& channel) {
  Payloads payloads;
  payloads.bytes_ = options.payload_bytes;
  const uint64_t count = std::clamp<uint64_t>(
      options.working_set_bytes / std::max<size_t>(options.payload_bytes, 1), 1,
      kMostPayloads);
  payloads.items_.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < payloads.items_.size(); ++i) {
    Item& item = payloads.items_[i];
    if (!options.attachment) {
      item.request.set_data(TestPattern(options.payload_bytes, i));
      item.checksum = Checksum(item.request.data());
      continue;
    }
    absl::StatusOr<rpc::Buffer> buffer =
        channel.AllocateBuffer(options.payload_bytes);
    if (!buffer.ok()) return buffer.status();
    FillTestPattern(reinterpret_cast<char*>(buffer->mutable_data()),
                    buffer->size(), i);
    item.attachment.Append(*std::move(buffer));
    item.checksum = Checksum(item.attachment);
  }
  return payloads;
}

absl::Status Payloads::CheckEcho(uint64_t number, const Payload& response,
                                 const rpc::BufferChain& attachment) const {
  const Item& sent = ItemOf(number);
  const uint64_t bytes = response.data().size() + attachment.size();
  bool right = response.data().size() == sent.request.data().size() &&
               attachment.size() == sent.attachment.size();
  if (right && IsSampled(number)) {
    right = sent.attachment.empty() ? response.data() == sent.request.data()
                                    : Checksum(attachment) == sent.checksum;
  }
  return right ? absl::OkStatus() : WrongAnswer(bytes_, bytes);
}

absl::Status Payloads::CheckReceipt(uint64_t number, const Receipt& receipt,
                                    bool checked) const {
  const Item& sent = ItemOf(number);
  const bool right = receipt.bytes() == bytes_ &&
                     (!checked || receipt.checksum() == sent.checksum);
  return right ? absl::OkStatus() : WrongAnswer(bytes_, receipt.bytes());
}

}  // namespace benchmarks
