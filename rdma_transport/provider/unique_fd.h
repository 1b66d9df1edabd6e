// A file descriptor with one owner, closed when it goes.
//
//   UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
//   if (!fd) return ErrnoStatus("eventfd");
#ifndef VERBENA_RDMA_TRANSPORT_PROVIDER_UNIQUE_FD_H_
#define VERBENA_RDMA_TRANSPORT_PROVIDER_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace rdma {

class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes over `fd`; negative means none.
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_PROVIDER_UNIQUE_FD_H_
