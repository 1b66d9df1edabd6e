// A .proto file's comments, on their way into generated code.
//
// Thread rule: values and pure functions; a Printer belongs to one thread.
#ifndef VERBENA_RPC_COMPILER_COMMENTS_H_
#define VERBENA_RPC_COMPILER_COMMENTS_H_

#include <string>
#include <vector>

namespace google::protobuf {
class FileDescriptor;
class MethodDescriptor;
class ServiceDescriptor;
namespace io {
class Printer;
}  // namespace io
}  // namespace google::protobuf

namespace rpc::compiler {

// The comments that belong to one declaration. Each line is without "//" and
// line break.
struct Comments {
  std::vector<std::string> leading;  // detached ones too, in their order
  std::vector<std::string> trailing;
};

// A service's trailing comment is what stands right after its opening brace.
Comments CommentsOf(const google::protobuf::ServiceDescriptor& service);
Comments CommentsOf(const google::protobuf::MethodDescriptor& method);
// What stands above the syntax and the package statements: the file's purpose,
// and its licence. None of it is trailing.
Comments CommentsOf(const google::protobuf::FileDescriptor& file);

// Prints the lines as C++ comments at the printer's indentation. Whatever they
// hold, they do not reach into the code that follows.
void PrintComment(const std::vector<std::string>& lines,
                  google::protobuf::io::Printer& printer);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_COMMENTS_H_
