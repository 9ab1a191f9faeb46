// SPDX-License-Identifier: Apache-2.0
#include "launcher/output.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sojourn::detail {
namespace {

// Reading stops while this much waits to be written: the ranks then wait in write(), as they would
// with a slow reader of their own.
constexpr std::size_t queue_bytes_max = 1 << 20;

// Linux calls a pipe writable when a write of PIPE_BUF bytes would not block, and no more than
// that.
constexpr std::size_t chunk_bytes = 4096;

constexpr std::size_t read_bytes = 64 * 1024;

/// Not on the stack, which may be limited to less (ulimit -s). The launcher has one thread.
char read_buffer[read_bytes];

}  // namespace

output_sink::output_sink(int fd) : fd_(fd) {
  struct stat status{};
  is_regular_ = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  is_terminal_ = isatty(fd) == 1;
}

void output_sink::put(int writer, std::string_view label, std::string_view text, bool ends_line) {
  if (is_abandoned_ || text.empty()) return;
  bool continues = open_line_of_ == writer;
  if (open_line_of_ != -1 && !continues) queue_ += '\n';
  if (!continues) queue_ += label;
  queue_ += text;
  open_line_of_ = ends_line ? -1 : writer;
}

bool output_sink::has_room() const { return queue_.size() - written_ < queue_bytes_max; }

void output_sink::abandon() {
  is_abandoned_ = true;
  queue_.clear();
  written_ = 0;
}

bool output_sink::writable_now() const {
  if (is_regular_) return true;
  pollfd ready{fd_, POLLOUT, 0};
  // An error also counts: the write then says which.
  return poll(&ready, 1, 0) == 1;
}

void output_sink::write_some() {
  // The descriptor is shared with whoever started us, so it is not ours to make non-blocking.
  while (has_pending() && writable_now()) {
    std::size_t size = queue_.size() - written_;
    if (!is_regular_) size = std::min(size, chunk_bytes);
    ssize_t count = write(fd_, queue_.data() + written_, size);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      failure_ = errno;
      abandon();
      return;
    }
    written_ += static_cast<std::size_t>(count);
  }
  if (!has_pending()) {
    queue_.clear();
    written_ = 0;
  } else if (written_ >= queue_bytes_max / 2) {
    queue_.erase(0, written_);
    written_ = 0;
  }
}

bool same_file(int a, int b) {
  struct stat status_a{};
  struct stat status_b{};
  return fstat(a, &status_a) == 0 && fstat(b, &status_b) == 0 &&
         status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
}

output_stream::output_stream(int fd, int writer, std::string label, output_sink& sink)
    : fd_(fd), writer_(writer), label_(std::move(label)), sink_(&sink) {}

output_stream::~output_stream() {
  if (fd_ >= 0) close(fd_);
}

output_stream::output_stream(output_stream&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      writer_(other.writer_),
      label_(std::move(other.label_)),
      sink_(other.sink_),
      partial_(std::move(other.partial_)),
      finishing_(other.finishing_),
      remaining_(other.remaining_) {}

void output_stream::read_some() {
  if (!is_open()) return;
  std::size_t size = finishing_ ? std::min(read_bytes, remaining_) : read_bytes;
  ssize_t count = size == 0 ? 0 : read(fd_, read_buffer, size);
  if (count < 0 && (errno == EINTR || (errno == EAGAIN && !finishing_))) return;
  if (count <= 0) {
    close_now();
    return;
  }
  take({read_buffer, static_cast<std::size_t>(count)});
  if (finishing_) {
    remaining_ -= static_cast<std::size_t>(count);
    if (remaining_ == 0) close_now();
  }
}

void output_stream::read_unless_said(std::string& said) {
  if (!is_open()) return;
  std::string text;
  for (ssize_t count; (count = read(fd_, read_buffer, read_bytes)) > 0;) {
    text.append(read_buffer, static_cast<std::size_t>(count));
  }
  if (text.empty() || text == said) return;
  if (said.empty()) said = text;
  take(text);
}

void output_stream::finish() {
  if (!is_open() || finishing_) return;
  int bytes = 0;
  if (ioctl(fd_, FIONREAD, &bytes) != 0) bytes = 0;
  finishing_ = true;
  remaining_ = static_cast<std::size_t>(bytes);
  if (remaining_ == 0) close_now();
}

void output_stream::take(std::string_view bytes) {
  std::size_t last_newline = bytes.rfind('\n');
  if (last_newline != std::string_view::npos) {
    std::size_t first_newline = bytes.find('\n');
    // The line that began in earlier reads, then the lines that lie in this one.
    partial_ += bytes.substr(0, first_newline + 1);
    put_lines(partial_);
    partial_.clear();
    put_lines(bytes.substr(first_newline + 1, last_newline - first_newline));
    bytes.remove_prefix(last_newline + 1);
  }
  partial_ += bytes;
  if (partial_.size() >= line_bytes_max) flush_partial_line();
}

void output_stream::put_lines(std::string_view lines) {
  if (label_.empty()) {
    sink_->put(writer_, label_, lines, true);
    return;
  }
  while (!lines.empty()) {
    std::size_t size = lines.find('\n') + 1;
    sink_->put(writer_, label_, lines.substr(0, size), true);
    lines.remove_prefix(size);
  }
}

void output_stream::flush_partial_line() {
  sink_->put(writer_, label_, partial_, false);
  partial_.clear();
}

void output_stream::close_now() {
  flush_partial_line();
  close(fd_);
  fd_ = -1;
}

}  // namespace sojourn::detail
