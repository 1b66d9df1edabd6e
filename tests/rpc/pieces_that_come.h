// What comes of a message, in pieces that are gone when the next one is asked
// for.
#ifndef VERBENA_TESTS_RPC_PIECES_THAT_COME_H_
#define VERBENA_TESTS_RPC_PIECES_THAT_COME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "rpc/transport.h"

namespace rpc::testing {

class PiecesThatCome : public ArrivingMessage {
 public:
  // `total`: what was promised.
  PiecesThatCome(std::string_view bytes, size_t piece, uint64_t total)
      : bytes_(bytes), piece_(piece), total_(total) {}

  uint64_t total_bytes() const override { return total_; }
  absl::Span<const std::byte> Next() override {
    current_ = std::make_unique<std::string>(Take(piece_));
    return {reinterpret_cast<const std::byte*>(current_->data()),
            current_->size()};
  }
  bool empty() const { return bytes_.empty(); }

 protected:
  // What comes next, `most` bytes of it; the piece before is gone.
  std::string_view Take(size_t most) {
    current_.reset();
    const std::string_view taken = bytes_.substr(0, most);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view bytes_;
  const size_t piece_;
  const uint64_t total_;
  std::unique_ptr<std::string> current_;
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_PIECES_THAT_COME_H_
