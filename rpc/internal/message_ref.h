// References to messages of any type that can be sent: what the runtime takes
// where a template would be needed otherwise.
//
//   Status Write(ConstMessageRef message);  // Write(request), Write(monster)
//   bool Read(MessageRef message);          // Read(&response), Read(&bytes)
//
// Each is two words, for two registers: the object, and the functions of its
// type that go by SerializationTraits. Protobuf messages have no such
// functions: for them lite() gives the message, and the path of theirs costs
// one comparison and needs no code of their type.
//
//   const auto* lite = message.lite();
//   if (ABSL_PREDICT_TRUE(lite != nullptr)) return EncodeMessage(*lite, ...);
//   BufferChain bytes;
//   Status status = message.Serialize(&bytes);
//
// Thread rule: values, which must not outlive the object; its rules are those
// of its type.
#ifndef VERBENA_RPC_INTERNAL_MESSAGE_REF_H_
#define VERBENA_RPC_INTERNAL_MESSAGE_REF_H_

#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "google/protobuf/message_lite.h"
#include "rpc/buffer.h"
#include "rpc/byte_buffer.h"
#include "rpc/serialization_traits.h"
#include "rpc/status.h"

namespace rpc::internal {

template <class T>
concept ProtobufMessage = std::is_base_of_v<google::protobuf::MessageLite, T>;

// What has SerializationTraits.
template <class T>
concept Serializable = requires {
  sizeof(SerializationTraits<T>);
};

template <class T>
concept Deserializable = !std::is_const_v<T> && Serializable<T>;

// The functions of a type, with its name left out of their signatures.
struct SerializeOps {
  Status (*serialize)(const void* message, ByteBuffer* buffer);
};
struct DeserializeOps {
  Status (*deserialize)(ByteBuffer* buffer, void* message);
};

// For references without a message: an error that says so.
Status SerializeNothing(const void* message, ByteBuffer* buffer);
Status DeserializeNothing(ByteBuffer* buffer, void* message);
inline constexpr SerializeOps kSerializeNothing = {&SerializeNothing};
inline constexpr DeserializeOps kDeserializeNothing = {&DeserializeNothing};

template <class T>
struct TraitsOps {
  static Status Serialize(const void* message, ByteBuffer* buffer) {
    bool own_buffer = true;
    return SerializationTraits<T>::Serialize(*static_cast<const T*>(message),
                                             buffer, &own_buffer);
  }
  static Status Deserialize(ByteBuffer* buffer, void* message) {
    return SerializationTraits<T>::Deserialize(buffer,
                                               static_cast<T*>(message));
  }

  static constexpr SerializeOps kSerialize = {&Serialize};
  static constexpr DeserializeOps kDeserialize = {&Deserialize};
};

// A specialisation for a protobuf type would have no effect.
template <class T>
inline constexpr bool kHasProtobufsOwnTraits =
    std::is_base_of_v<ProtobufTraits, SerializationTraits<T>>;

// To a message that is sent.
class ConstMessageRef {
 public:
  // No message: lite() is null, Serialize an error.
  ConstMessageRef() : message_(nullptr), ops_(&kSerializeNothing) {}

  template <Serializable T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE ConstMessageRef(
      const T& message) {  // NOLINT(google-explicit-constructor)
    if constexpr (ProtobufMessage<T>) {
      static_assert(kHasProtobufsOwnTraits<T>,
                    "protobuf messages are serialized by protobuf alone: "
                    "specialise SerializationTraits for a type around it");
      message_ = static_cast<const google::protobuf::MessageLite*>(&message);
      ops_ = nullptr;
    } else {
      message_ = &message;
      ops_ = &TraitsOps<T>::kSerialize;
    }
  }

  bool has_message() const { return message_ != nullptr; }

  // The object itself; null where there is none. A protobuf message is at the
  // address of its MessageLite: generated classes have no other base.
  const void* object() const { return message_; }
  // Another object of the same type.
  ConstMessageRef WithObject(const void* object) const {
    ConstMessageRef other(*this);
    other.message_ = object;
    return other;
  }

  // Null where it is not a protobuf message.
  ABSL_ATTRIBUTE_ALWAYS_INLINE const google::protobuf::MessageLite* lite()
      const {
    if (ABSL_PREDICT_FALSE(ops_ != nullptr)) return nullptr;
    // So that the caller's test of the result is the one above.
    ABSL_ASSUME(message_ != nullptr);
    return static_cast<const google::protobuf::MessageLite*>(message_);
  }

  // The bytes in place of what was in `*chain`, which stays as it is where this
  // fails. Errors: what the type's traits return; INTERNAL without a message.
  // A ByteBuffer that is not valid, as message or as the traits' result, is an
  // empty message.
  Status Serialize(BufferChain* chain) const;

 private:
  const void* message_;
  const SerializeOps* ops_;  // null: message_ is a MessageLite
};

// To a message that is received into.
class MessageRef {
 public:
  // No message: lite() is null, Deserialize an error.
  MessageRef() : message_(nullptr), ops_(&kDeserializeNothing) {}

  // REQUIRES: `message` is not null.
  template <Deserializable T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE MessageRef(
      T* message) {  // NOLINT(google-explicit-constructor)
    if constexpr (ProtobufMessage<T>) {
      static_assert(kHasProtobufsOwnTraits<T>,
                    "protobuf messages are parsed by protobuf alone: "
                    "specialise SerializationTraits for a type around it");
      message_ = static_cast<google::protobuf::MessageLite*>(message);
      ops_ = nullptr;
    } else {
      message_ = message;
      ops_ = &TraitsOps<T>::kDeserialize;
    }
  }

  bool has_message() const { return message_ != nullptr; }

  // See ConstMessageRef.
  void* object() const { return message_; }

  // Null where it is not a protobuf message.
  ABSL_ATTRIBUTE_ALWAYS_INLINE google::protobuf::MessageLite* lite() const {
    if (ABSL_PREDICT_FALSE(ops_ != nullptr)) return nullptr;
    ABSL_ASSUME(message_ != nullptr);
    return static_cast<google::protobuf::MessageLite*>(message_);
  }

  // Makes the message of the bytes, and takes them, whatever comes of it. A
  // type may keep their memory. Errors: what the type's traits return; INTERNAL
  // without a message.
  Status Deserialize(BufferChain&& chain) const;

 private:
  void* message_;
  const DeserializeOps* ops_;  // null: message_ is a MessageLite
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_MESSAGE_REF_H_
