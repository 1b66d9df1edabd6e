// The messages of methods whose fields the generated code writes and parses
// itself (rpc/internal/message_fields.h): those that have but single numbers,
// texts and bytes. All others are left to protobuf.
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_COMPILER_MESSAGE_FIELDS_H_
#define VERBENA_RPC_COMPILER_MESSAGE_FIELDS_H_

#include <optional>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/printer.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// None: the message is left to protobuf.
std::optional<MessageModel> BuildMessage(
    const google::protobuf::Descriptor& message);

// The specialisation of FieldsOf.
void PrintFieldsOf(const MessageModel& message,
                   google::protobuf::io::Printer& printer);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_MESSAGE_FIELDS_H_
