#include "tools/rpc_cli/message_input.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace rpc_cli {

MessageInput::MessageInput(std::string_view text)
    : fd_(-1), event_(-1), ended_(true) {
  splitter_.Add(text);
  splitter_.End();
}

MessageInput::MessageInput(int fd)
    : fd_(fd), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

MessageInput::~MessageInput() {
  if (event_ >= 0) ::close(event_);
}

void MessageInput::Interrupt() {
  const uint64_t one = 1;
  // It fails only where it is readable already.
  if (event_ >= 0) (void)!::write(event_, &one, sizeof(one));
}

absl::StatusOr<std::optional<std::string>> MessageInput::Next() {
  while (true) {
    std::optional<std::string> json = splitter_.Next();
    if (json.has_value()) {
      ++count_;
      return json;
    }
    if (ended_) break;
    absl::StatusOr<Read> read = ReadSome();
    if (!read.ok()) return read.status();
    if (*read == Read::kInterrupted) return std::nullopt;
    if (*read == Read::kEnd) {
      ended_ = true;
      splitter_.End();
    }
  }
  if (!splitter_.HasUnfinished()) return std::nullopt;
  return absl::InvalidArgumentError(
      absl::StrCat("the input ends within message ", count_ + 1,
                   ": a bracket or a quote is missing"));
}

absl::StatusOr<MessageInput::Read> MessageInput::ReadSome() {
  std::array<pollfd, 2> waits = {pollfd{.fd = fd_, .events = POLLIN},
                                 pollfd{.fd = event_, .events = POLLIN}};
  while (::poll(waits.data(), waits.size(), -1) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
  }
  if (waits[1].revents != 0) return Read::kInterrupted;
  std::array<char, 64 << 10> bytes;
  ssize_t count;
  while ((count = ::read(fd_, bytes.data(), bytes.size())) < 0) {
    if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, "the input cannot be read");
    }
  }
  splitter_.Add({bytes.data(), static_cast<size_t>(count)});
  return count == 0 ? Read::kEnd : Read::kSome;
}

}  // namespace rpc_cli
