// Finds where each JSON value ends in text that holds one after the other, as
// it comes in pieces.
//
//   JsonSplitter splitter;
//   splitter.Add(R"({"a": 1} {"b")");
//   splitter.Next();  // {"a": 1}
//   splitter.Next();  // nothing yet
//
// Looks at brackets, quotes and white space only: whether it is JSON is for
// who parses the values. Protobuf takes 'single quotes', too.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_TOOLS_RPC_CLI_JSON_SPLITTER_H_
#define VERBENA_TOOLS_RPC_CLI_JSON_SPLITTER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rpc_cli {

class JsonSplitter {
 public:
  void Add(std::string_view bytes);
  // Nothing more comes: a number or a word at the very end is complete.
  void End() { ended_ = true; }

  // The next value that is complete.
  std::optional<std::string> Next();

  // After Next gave nothing: the beginning of a value is there.
  bool HasUnfinished() const { return begin_ < text_.size(); }

 private:
  // Just past the value that begins at begin_; 0: its end is not there yet.
  size_t FindEnd();
  size_t FindEndOfWord();
  // Looks at the next character of a value with brackets or quotes.
  void Step(char c);

  std::string text_;
  size_t begin_ = 0;  // of the value
  size_t next_ = 0;   // what FindEnd has not looked at yet
  size_t depth_ = 0;  // brackets that are open
  char quote_ = 0;    // the one that ends the string, or 0: in none
  bool escaped_ = false;
  bool ended_ = false;
};

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_JSON_SPLITTER_H_
