// SPDX-License-Identifier: Apache-2.0
#include "hosts/job_input.hpp"

#include <cerrno>
#include <utility>

namespace sojourn::detail {

job_input::~job_input() {
  if (to_ >= 0) close(to_);
}

bool job_input::may_read() const { return isatty(from_) == 0 || tcgetpgrp(from_) == getpgrp(); }

void job_input::read_some() {
  char buffer[16 << 10];
  if (!may_read()) return;
  const ssize_t n = read(from_, buffer, sizeof buffer);
  if (n > 0) {
    read_.assign(buffer, static_cast<std::size_t>(n));
  } else if (n == 0 || (errno != EINTR && errno != EIO)) {
    is_open_ = false;
  }
}

void job_input::write_some() {
  if (to_ < 0) return;
  if (!read_.empty()) {
    const ssize_t n = write(to_, read_.data(), read_.size());
    if (n > 0) read_.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      read_.clear();
      is_open_ = false;
    }
  }
  if (!is_open_ && read_.empty()) close(std::exchange(to_, -1));
}

}  // namespace sojourn::detail
