// Text of generated code with gaps in it, which are filled from variables.
//
//   PrintText({{"Method", "Get"}, {"parameters", "int a,\nint b"}},
//             R"(void $Method$(
//       $parameters$);
//   )", printer);
//
// prints
//
//   void Get(
//       int a,
//       int b);
//
// Against Printer::Print alone, values may have several lines, so that one text
// can be put into another.
//
// Thread rule: pure functions; a Printer belongs to one thread.
#ifndef VERBENA_RPC_COMPILER_TEXT_H_
#define VERBENA_RPC_COMPILER_TEXT_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/printer.h"

namespace rpc::compiler {

using Variables = std::map<std::string, std::string>;

// `text` with a variable's value for each $name$. Further lines of a value
// begin below its first character. A line whose gaps leave nothing is left out.
// Gaps of other names stay.
std::string Fill(const Variables& variables, absl::string_view text);

// Prints that at the printer's indentation. REQUIRES: no gap stays.
void PrintText(const Variables& variables, absl::string_view text,
               google::protobuf::io::Printer& printer);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_TEXT_H_
