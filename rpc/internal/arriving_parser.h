// Parses a message while it arrives, and has its long strings read right to
// where they belong.
//
// Protobuf copies a string out of the memory that it is given. Where the
// transport can store anywhere (ArrivingMessage::ReadInto), that copy is the
// longest part of a large message's way, and not needed: what is in front of
// the string is parsed, the string is made as long as it will be and read into,
// and parsing goes on behind it. That is the same message, for what protobuf
// merges piece by piece, split between fields, it would have parsed as one
// (protobuf.dev, "Last One Wins"). Strings in messages within the message are
// found, too, but in maps, groups, extensions and unknown fields, and of
// messages on an arena: those protobuf copies.
//
//   ArrivingParser parser(arriving);
//   if (!parser.Parse(message)) ... parser.is_cut_off() ...
//
// Thread rule: one thread; the message belongs to the caller.
#ifndef VERBENA_RPC_INTERNAL_ARRIVING_PARSER_H_
#define VERBENA_RPC_INTERNAL_ARRIVING_PARSER_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/message_lite.h"
#include "rpc/internal/piece_input_stream.h"
#include "rpc/transport.h"

namespace rpc::internal {

class ArrivingParser {
 public:
  // Shorter strings are copied.
  static constexpr size_t kFewestBytesInPlace = 128 << 10;

  explicit ArrivingParser(ArrivingMessage& arriving,
                          size_t fewest_bytes_in_place = kFewestBytesInPlace)
      : fewest_bytes_in_place_(fewest_bytes_in_place), stream_(arriving) {}

  // `message`'s former content is gone. False where the bytes are no complete
  // message of this type, or did not all come. May throw std::bad_alloc.
  bool Parse(google::protobuf::MessageLite& message);
  bool is_cut_off() const { return stream_.is_cut_off(); }

 private:
  // What has arrived.
  class Stream final : public PieceInputStream {
   public:
    explicit Stream(ArrivingMessage& arriving) : arriving_(arriving) {}

    using PieceInputStream::Peek;
    // Puts what is left of the current piece, at most kMostJoined bytes, and
    // the beginning of the next one side by side. False: there is none.
    static constexpr size_t kMostJoined = 16;
    bool Join();
    // False where the rest does not come.
    bool ReadInto(absl::Span<std::byte> to);
    bool is_cut_off() const { return is_cut_off_; }
    bool can_read_into() const { return arriving_.can_read_into(); }
    uint64_t total_bytes() const { return arriving_.total_bytes(); }

   private:
    absl::Span<const std::byte> NextPiece() override;

    ArrivingMessage& arriving_;
    absl::Span<const std::byte> next_;  // what follows joint_
    std::byte joint_[2 * kMostJoined];
    bool is_cut_off_ = false;
  };

  // A field that reaches far beyond what has come, or the end.
  struct LongField {
    // Null: parse what there is until `begin`, and look again.
    const google::protobuf::FieldDescriptor* field = nullptr;
    int64_t begin = 0;    // where protobuf is to stop
    int64_t content = 0;  // where its string or message begins
    int64_t bytes = 0;    // and how long that is
  };

  // Parses into `message` up to `end`.
  bool Merge(google::protobuf::Message& message, int64_t end, int depth);
  LongField FindLongField(const google::protobuf::Descriptor& type,
                          int64_t end);
  // Has protobuf parse up to `end`.
  bool MergeAsUsual(google::protobuf::MessageLite& message, int64_t end);
  bool ReadString(google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor& field, size_t bytes);

  const size_t fewest_bytes_in_place_;
  Stream stream_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_ARRIVING_PARSER_H_
