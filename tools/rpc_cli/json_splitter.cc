#include "tools/rpc_cli/json_splitter.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace rpc_cli {
namespace {

bool IsQuote(char c) { return c == '"' || c == '\''; }
bool IsOpening(char c) { return c == '{' || c == '['; }
bool IsClosing(char c) { return c == '}' || c == ']'; }

}  // namespace

void JsonSplitter::Add(std::string_view bytes) {
  // What was given out goes only now: once a piece, not once a value.
  text_.erase(0, begin_);
  next_ -= begin_;
  begin_ = 0;
  text_.append(bytes);
}

std::optional<std::string> JsonSplitter::Next() {
  if (next_ == begin_) {
    while (begin_ < text_.size() && absl::ascii_isspace(text_[begin_])) {
      ++begin_;
    }
    next_ = begin_;
  }
  if (begin_ == text_.size()) return std::nullopt;
  const size_t end = FindEnd();
  if (end == 0) return std::nullopt;
  std::string value = text_.substr(begin_, end - begin_);
  begin_ = next_ = end;
  return value;
}

size_t JsonSplitter::FindEnd() {
  const char first = text_[begin_];
  if (!IsOpening(first) && !IsQuote(first)) return FindEndOfWord();
  while (next_ < text_.size()) {
    Step(text_[next_++]);
    if (depth_ == 0 && quote_ == 0) return next_;
  }
  return 0;
}

// A bracket that closes nothing is a word, too, if a wrong one.
size_t JsonSplitter::FindEndOfWord() {
  next_ = std::max(next_, begin_ + 1);
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (absl::ascii_isspace(c) || IsOpening(c) || IsQuote(c)) return next_;
    ++next_;
  }
  return ended_ ? next_ : 0;
}

void JsonSplitter::Step(char c) {
  if (escaped_) {
    escaped_ = false;
  } else if (quote_ != 0) {
    escaped_ = c == '\\';
    if (c == quote_) quote_ = 0;
  } else if (IsQuote(c)) {
    quote_ = c;
  } else if (IsOpening(c)) {
    ++depth_;
  } else if (IsClosing(c)) {
    --depth_;
  }
}

}  // namespace rpc_cli
