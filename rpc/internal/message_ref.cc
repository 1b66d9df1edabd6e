#include "rpc/internal/message_ref.h"

#include <utility>

namespace rpc::internal {

Status SerializeNothing(const void*, ByteBuffer*) {
  return Status(StatusCode::INTERNAL, "there is no message to serialize");
}

Status DeserializeNothing(ByteBuffer*, void*) {
  return Status(StatusCode::INTERNAL,
                "there is no message to deserialize into");
}

Status ConstMessageRef::Serialize(BufferChain* chain) const {
  ByteBuffer bytes;
  bool own_buffer = true;
  const google::protobuf::MessageLite* const message = lite();
  Status status = message != nullptr
                      ? ProtobufTraits::Serialize(*message, &bytes, &own_buffer)
                      : ops_->serialize(message_, &bytes);
  if (status.ok()) *chain = bytes.TakeChain();
  return status;
}

Status MessageRef::Deserialize(BufferChain&& chain) const {
  ByteBuffer bytes(std::move(chain));
  google::protobuf::MessageLite* const message = lite();
  return message != nullptr ? ProtobufTraits::Deserialize(&bytes, message)
                            : ops_->deserialize(&bytes, message_);
}

}  // namespace rpc::internal
