// SPDX-License-Identifier: Apache-2.0
// Forwards what ranks write, by whole lines: an `output_stream` reads one rank's pipe and passes
// lines on to an `output_sink`, the launcher's own standard output or standard error. It knows
// pipes and lines, not processes. Nothing here blocks, so that a reader that pauses never keeps the
// launcher from noticing a rank's death.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sojourn::detail {

/// A longer line is forwarded in parts, so that a rank which writes no newline needs bounded
/// memory.
inline constexpr std::size_t line_bytes_max = 256 * 1024;

/// One of the launcher's outputs: a queue in front of a file descriptor.
class output_sink {
 public:
  /// Does not own `fd`.
  explicit output_sink(int fd);

  /// Queues `text` of writer `writer`, whole lines or, when `ends_line` is false, a part of a line,
  /// which the same writer continues with its next put(). When another writer comes first, that
  /// line is ended with a newline: the text of two writers never shares a line. `label` is put
  /// before text that starts a line.
  void put(int writer, std::string_view label, std::string_view text, bool ends_line);

  /// Writes what can be written without blocking.
  void write_some();

  bool has_pending() const { return written_ < queue_.size(); }
  /// False while so much is queued that streams should not be read.
  bool has_room() const;
  /// Drops what is queued and whatever is put from now on.
  void abandon();

  /// errno of the write that failed, or 0. The sink is abandoned then.
  int failure() const { return failure_; }
  bool is_terminal() const { return is_terminal_; }
  int fd() const { return fd_; }

 private:
  bool writable_now() const;

  int fd_;
  bool is_regular_ = false;
  bool is_terminal_ = false;
  bool is_abandoned_ = false;
  int failure_ = 0;
  int open_line_of_ = -1;  ///< The writer whose unfinished line the queue ends with, or -1.
  std::string queue_;
  std::size_t written_ = 0;  ///< Bytes at the front of queue_ that are written already.
};

/// True when both descriptors lead to the same file, pipe or terminal: they must share one sink, or
/// the lines of one would land inside the lines of the other.
bool same_file(int a, int b);

/// What one rank writes to its standard output or standard error.
class output_stream {
 public:
  /// Owns `fd`, the read end of a pipe, which must be non-blocking. `writer` differs between
  /// streams.
  output_stream(int fd, int writer, std::string label, output_sink& sink);
  ~output_stream();
  output_stream(output_stream&& other) noexcept;
  output_stream& operator=(output_stream&&) = delete;

  /// Reads what is there, up to one buffer, and passes whole lines on. Closes at the end of the
  /// pipe.
  void read_some();

  /// Reads all that the pipe holds, and passes it on unless it equals `said`, which another stream
  /// has passed on. When `said` is empty, it becomes this text.
  void read_unless_said(std::string& said);

  /// Passes an unfinished line on, now that nothing has followed it for a while.
  void flush_partial_line();

  /// From now on reads no more than what the pipe holds already, then closes: for a pipe that some
  /// descendant of the rank keeps open.
  void finish();

  bool is_open() const { return fd_ >= 0; }
  bool wants_read() const { return is_open() && sink_->has_room(); }
  bool has_partial_line() const { return !partial_.empty(); }
  int fd() const { return fd_; }
  output_sink& sink() const { return *sink_; }

 private:
  void take(std::string_view bytes);
  void put_lines(std::string_view lines);
  void close_now();

  int fd_;
  int writer_;
  std::string label_;
  output_sink* sink_;
  std::string partial_;  ///< The line that has no newline yet.
  bool finishing_ = false;
  std::size_t remaining_ = 0;  ///< While finishing: bytes still to be read.
};

}  // namespace sojourn::detail
