// gRPC's names for protobuf's classes, for programs that use them:
//
//   rpc::protobuf::Message* message = ...;
//   rpc::protobuf::json::MessageToJsonString(*message, &text);
//
// They are protobuf's own.
#ifndef VERBENA_RPC_PROTOBUF_H_
#define VERBENA_RPC_PROTOBUF_H_

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/message.h"
#include "google/protobuf/message_lite.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver_util.h"

namespace rpc::protobuf {

using ::google::protobuf::Descriptor;
using ::google::protobuf::DescriptorDatabase;
using ::google::protobuf::DescriptorPool;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::FileDescriptor;
using ::google::protobuf::FileDescriptorProto;
using ::google::protobuf::Message;
using ::google::protobuf::MessageLite;
using ::google::protobuf::MethodDescriptor;
using ::google::protobuf::ServiceDescriptor;
using ::google::protobuf::SimpleDescriptorDatabase;
using ::google::protobuf::SourceLocation;

namespace io {
using ::google::protobuf::io::CodedInputStream;
using ::google::protobuf::io::ZeroCopyInputStream;
using ::google::protobuf::io::ZeroCopyOutputStream;
}  // namespace io

namespace json = ::google::protobuf::util;

namespace util {
using ::google::protobuf::util::Status;
}  // namespace util

}  // namespace rpc::protobuf

#endif  // VERBENA_RPC_PROTOBUF_H_
