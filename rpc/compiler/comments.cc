#include "rpc/compiler/comments.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/io/printer.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::FileDescriptor;
using ::google::protobuf::FileDescriptorProto;
using ::google::protobuf::MethodDescriptor;
using ::google::protobuf::ServiceDescriptor;
using ::google::protobuf::SourceLocation;

void AppendLines(const std::string& comment, std::vector<std::string>& lines) {
  if (comment.empty()) return;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(comment, "\n"), '\n')) {
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(line));
  }
}

void AppendLeading(const SourceLocation& location,
                   std::vector<std::string>& lines) {
  for (const std::string& detached : location.leading_detached_comments) {
    AppendLines(detached, lines);
    lines.emplace_back();  // the blank line that sets it apart
  }
  AppendLines(location.leading_comments, lines);
}

Comments CommentsAt(const SourceLocation& location) {
  Comments comments;
  AppendLeading(location, comments.leading);
  AppendLines(location.trailing_comments, comments.trailing);
  return comments;
}

}  // namespace

Comments CommentsOf(const ServiceDescriptor& service) {
  SourceLocation location;
  return service.GetSourceLocation(&location) ? CommentsAt(location)
                                              : Comments();
}

Comments CommentsOf(const MethodDescriptor& method) {
  SourceLocation location;
  return method.GetSourceLocation(&location) ? CommentsAt(location)
                                             : Comments();
}

Comments CommentsOf(const FileDescriptor& file) {
  Comments comments;
  for (const int statement : {FileDescriptorProto::kSyntaxFieldNumber,
                              FileDescriptorProto::kPackageFieldNumber}) {
    SourceLocation location;
    if (file.GetSourceLocation({statement}, &location)) {
      AppendLeading(location, comments.leading);
    }
  }
  return comments;
}

void PrintComment(const std::vector<std::string>& lines,
                  google::protobuf::io::Printer& printer) {
  for (const std::string& line : lines) {
    printer.Print("//");
    // A blank belongs to the comment's text where protoc found one there.
    if (!line.empty() && line[0] != ' ') printer.Print(" ");
    printer.PrintRaw(line);
    // A backslash at the end would make the next line part of the comment.
    if (absl::EndsWith(line, "\\")) printer.Print(" .");
    printer.Print("\n");
  }
}

}  // namespace rpc::compiler
