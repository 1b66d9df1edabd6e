#include "rpc/compiler/text.h"

#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace rpc::compiler {
namespace {

// The value, or the gap itself.
std::string ValueOf(const Variables& variables, absl::string_view name) {
  const auto variable = variables.find(std::string(name));
  return variable == variables.end() ? absl::StrCat("$", name, "$")
                                     : variable->second;
}

// How many characters the last line has.
size_t Column(const std::string& text) {
  return text.size() - (text.rfind('\n') + 1);
}

std::string FillLine(const Variables& variables, absl::string_view line) {
  std::string filled;
  for (;;) {
    const size_t open = line.find('$');
    const size_t close = line.find('$', open + 1);
    if (open == line.npos || close == line.npos) break;
    absl::StrAppend(&filled, line.substr(0, open));
    const std::string line_break =
        absl::StrCat("\n", std::string(Column(filled), ' '));
    absl::StrAppend(
        &filled,
        absl::StrReplaceAll(
            ValueOf(variables, line.substr(open + 1, close - open - 1)),
            {{"\n", line_break}}));
    line.remove_prefix(close + 1);
  }
  absl::StrAppend(&filled, line);
  return filled;
}

}  // namespace

std::string Fill(const Variables& variables, absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string filled = FillLine(variables, line);
    const bool is_blank = absl::StripAsciiWhitespace(filled).empty();
    if (is_blank && !line.empty()) continue;
    lines.push_back(std::move(filled));
  }
  return absl::StrJoin(lines, "\n");
}

void PrintText(const Variables& variables, absl::string_view text,
               google::protobuf::io::Printer& printer) {
  printer.Print(Fill(variables, text).c_str());
}

}  // namespace rpc::compiler
