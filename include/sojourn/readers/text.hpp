// SPDX-License-Identifier: Apache-2.0
// What all readers of files have in common: each member of a team goes over the records that begin
// in its own stretches of a text.
//
// A file that is not compressed is mapped, and each member has one stretch of it. A compressed one
// can only be read from its beginning: each member has it decompressed as a whole, and the members
// take stretches of 1 MiB in turn. A reader (lines.hpp is the shortest) says how it is found where
// a record begins, asks next_record() for the next one, looks for its end, and takes it.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sojourn/activate.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/team.hpp"

namespace sojourn::readers {

[[noreturn]] inline void refuse(const std::string& path, const std::string& why) {
  throw error(path + " cannot be read: " + why);
}
[[noreturn]] inline void refuse_errno(const std::string& path, int number) {
  refuse(path, std::strerror(number));
}

/// Closes a file descriptor at its end.
class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

/// The program that decompresses a file which begins with these bytes; null when it is not
/// compressed.
inline const char* decompressor_of(std::string_view first_bytes) {
  const auto begins_with = [&](std::string_view magic) { return first_bytes.starts_with(magic); };
  if (begins_with("\x1f\x8b")) return "gzip";
  if (begins_with(std::string_view("\xfd\x37zXZ\0", 6))) return "xz";
  if (begins_with("\x28\xb5\x2f\xfd")) return "zstd";
  // "BZh" and a digit may also begin a text: the bytes of the first block, or of the end, tell.
  if (begins_with("BZh") && first_bytes.size() >= 6 &&
      (first_bytes.substr(4, 2) == "1A" || first_bytes.substr(4, 2) == "\x17r"))
    return "bzip2";
  return nullptr;
}

/// A child process that writes the decompressed text of a file to a pipe. It ends with this object
/// at the latest.
class decompression {
 public:
  /// Errors: sojourn::error when the program cannot be started.
  decompression(const char* program, const descriptor& file, const std::string& path)
      : program_(program), output_(-1) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) refuse_errno(path, errno);
    output_ = descriptor(ends[0]);
    const descriptor input(ends[1]);

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, file.number(), 0);
    posix_spawn_file_actions_adddup2(&files, input.number(), 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    // Whatever this process does with signals, the child is to end when nobody reads any more.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigaddset(&signals, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string name = program;
    std::string options = "-dc";
    char* const arguments[] = {name.data(), options.data(), nullptr};
    const int failure = ::posix_spawnp(&child_, program, &files, &attributes, arguments, ::environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (failure != 0) {
      refuse(path, "it is compressed, and " + name + " cannot be started (" +
                       std::strerror(failure) + "): install " + name +
                       ", or decompress the file first");
    }
  }
  decompression(const decompression&) = delete;
  decompression& operator=(const decompression&) = delete;
  ~decompression() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    await();
  }

  /// Writes the next bytes of the text to `to`, at most `room`, and returns how many; 0 at its end.
  /// Waits for the child. Errors: sojourn::error when the child has failed.
  std::size_t read(char* to, std::size_t room, const std::string& path) {
    if (child_ <= 0) return 0;
    ssize_t got;
    do {
      got = ::read(output_.number(), to, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0) refuse_errno(path, errno);
    if (got > 0) return static_cast<std::size_t>(got);
    const std::optional<int> status = await();
    if (status == 0) return 0;
    const std::string name = program_;
    const std::string end = !status.has_value() ? "ended, and its exit status went to someone else"
                            : WIFSIGNALED(*status)
                                ? "was ended by signal " + std::to_string(WTERMSIG(*status))
                                : "failed with status " + std::to_string(WEXITSTATUS(*status));
    refuse(path, "`" + name + " -dc`, which decompresses it, " + end + ": see what `" + name +
                     " -t` says of the file");
  }

 private:
  /// Waits for the child's end and returns its status; nothing when that is not to be had, because
  /// the program ignores SIGCHLD, say.
  std::optional<int> await() {
    const pid_t child = std::exchange(child_, 0);
    int status = 0;
    pid_t ended;
    do {
      ended = ::waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    return ended == child ? std::optional(status) : std::nullopt;
  }

  const char* program_;
  descriptor output_;
  pid_t child_ = 0;
};

/// A file's text as one member of a team sees it: the record that it is at, and what follows as far
/// as it is in memory. Places in it are given as distances from where the record begins. It keeps
/// its fiber on its rank, because its memory is that rank's.
class text {
 public:
  /// How many bytes a stretch of a compressed file's text has.
  static constexpr std::uint64_t stretch_bytes = std::uint64_t{1} << 20;

  text(const std::string& path, const team& members)
      : path_(path),
        member_(static_cast<std::uint64_t>(members.rank_me())),
        members_(static_cast<std::uint64_t>(members.rank_count())) {
    if (members_ == 0) refuse(path, "this rank is no member of the team that reads it");
    // A FIFO is to be refused, without waiting for somebody who writes to it.
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat about{};
    if (file.number() < 0 || ::fstat(file.number(), &about) != 0) refuse_errno(path, errno);
    if (S_ISDIR(about.st_mode)) refuse_errno(path, EISDIR);
    char first_bytes[6];
    const ssize_t got =
        S_ISREG(about.st_mode) ? ::pread(file.number(), first_bytes, sizeof first_bytes, 0) : 0;
    if (got < 0) refuse_errno(path, errno);
    if (!S_ISREG(about.st_mode) || (about.st_size == 0 && got > 0)) {
      refuse(path,
             "it is no ordinary file, of which each rank could read its part: write what it has to "
             "a file first");
    }
    if (const char* const program = decompressor_of({first_bytes, static_cast<std::size_t>(got)})) {
      child_.emplace(program, file, path);
    } else if (about.st_size > 0) {
      size_ = static_cast<std::size_t>(about.st_size);
      void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
      if (at == MAP_FAILED) refuse_errno(path, errno);
      (void)::madvise(at, size_, MADV_SEQUENTIAL);
      mapping_ = at;
      mapped_ = size_;
      at_ = static_cast<const char*>(at);
    }
  }
  text(const text&) = delete;
  text& operator=(const text&) = delete;
  ~text() {
    if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
  }

  const std::string& path() const { return path_; }
  /// Where the record begins, in bytes from the beginning of the text.
  std::uint64_t offset() const { return offset_; }
  const char* begin() const { return at_; }
  /// How many bytes are in memory.
  std::size_t size() const { return size_; }
  /// The first `bytes` of them.
  std::string_view first(std::size_t bytes) const { return {at_, bytes}; }
  bool is_at_end() { return size_ == 0 && !more(); }

  /// Goes behind the record that was taken, and to the next one that begins in a stretch of this
  /// member; false when there is none. In a stretch that begins amid a record, looks for a line at
  /// which begins() is true; see(bytes, count) gets all that is passed over on the way from the
  /// record before. What was in memory may have another address then.
  template <class Begins, class See>
  bool next_record(Begins begins, See see) {
    pass(std::exchange(taken_, 0));
    while (offset_ >= last_) {
      if (!next_stretch()) return false;
      if (offset_ >= first_) continue;
      pass_to(first_ - 1, see);  // perhaps that byte ends a line
      do {
        pass_line(see);
      } while (!is_at_end() && !begins());
    }
    return !is_at_end();
  }
  /// The record has this many bytes.
  void take(std::size_t bytes) { taken_ = bytes; }
  /// True when what follows behind so many bytes begins in no stretch that this member is in now.
  bool leaves_stretch(std::size_t bytes) const { return offset_ + bytes >= last_; }

  /// The byte there; -1 behind the end of the text.
  int peek(std::size_t place) {
    while (place >= size_)
      if (!more()) return -1;
    return static_cast<unsigned char>(at_[place]);
  }
  /// The place of the first `byte` at `from` or behind it; size() when there is none in the text.
  std::size_t find(char byte, std::size_t from) {
    while (from < size_ || more()) {
      if (from >= size_) continue;
      const void* const found = std::memchr(at_ + from, byte, size_ - from);
      if (found != nullptr) return static_cast<std::size_t>(static_cast<const char*>(found) - at_);
      from = size_;
    }
    return size_;
  }
  /// Skips bytes in front of the first record.
  void pass(std::size_t bytes) {
    at_ += bytes;
    size_ -= bytes;
    offset_ += bytes;
  }

  /// Throws a sojourn::error about the record that begins at `place`.
  [[noreturn]] void fail(const char* record, const std::string& why, std::size_t place = 0) const {
    throw error(path_ + ": the " + record + " at byte " + std::to_string(offset_ + place) + ": " +
                why);
  }

 private:
  bool next_stretch() {
    if (child_.has_value()) {
      if (is_at_end()) return false;
      first_ = (member_ + members_ * stretches_++) * stretch_bytes;
      last_ = first_ + stretch_bytes;
      return true;
    }
    if (stretches_++ > 0) return false;
    const auto begin_of = [&](std::uint64_t i) {  // mapped_ * i / members_, without overflow
      return mapped_ / members_ * i + mapped_ % members_ * i / members_;
    };
    first_ = begin_of(member_);
    last_ = begin_of(member_ + 1);
    return true;
  }
  template <class See>
  void pass_to(std::uint64_t offset, See& see) {
    while (offset_ < offset && !is_at_end()) {
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(size_, offset - offset_));
      see(at_, some);
      pass(some);
    }
  }
  template <class See>
  void pass_line(See& see) {
    for (bool ended = false; !ended && !is_at_end();) {
      const void* const found = std::memchr(at_, '\n', size_);
      ended = found != nullptr;
      const std::size_t some =
          ended ? static_cast<std::size_t>(static_cast<const char*>(found) - at_) + 1 : size_;
      see(at_, some);
      pass(some);
    }
  }

  /// Has more of the text in memory, behind what is there; false at its end. What is there may have
  /// another address then.
  bool more() { return child_.has_value() && read_more(); }
  [[gnu::noinline]] bool read_more() {
    constexpr std::size_t least_room = std::size_t{64} << 10;
    const std::size_t used = buffer_ != nullptr ? static_cast<std::size_t>(at_ - buffer_.get()) : 0;
    if (capacity_ < used + size_ + least_room) {
      // Records are moved to the front only where as much is free: each byte is moved a few times.
      const std::size_t wanted =
          used >= size_ + least_room ? capacity_ : std::max(2 * capacity_, 8 * least_room);
      std::unique_ptr<char[]> larger;
      if (wanted > capacity_) larger.reset(new char[wanted]);
      char* const front = larger != nullptr ? larger.get() : buffer_.get();
      std::memmove(front, at_, size_);
      if (larger != nullptr) buffer_ = std::move(larger);
      capacity_ = wanted;
      at_ = front;
    }
    const std::size_t filled = static_cast<std::size_t>(at_ - buffer_.get()) + size_;
    const std::size_t got = child_->read(buffer_.get() + filled, capacity_ - filled, path_);
    size_ += got;
    return got > 0;
  }

  stay here_;
  std::string path_;
  std::uint64_t member_;
  std::uint64_t members_;

  const char* at_ = "";       ///< The record and what follows, …
  std::size_t size_ = 0;      ///< … as far as it is in memory.
  std::uint64_t offset_ = 0;  ///< Where that is in the text.
  std::size_t taken_ = 0;     ///< Bytes of it that the next record comes behind.
  std::uint64_t first_ = 0;   ///< The stretch: from this byte …
  std::uint64_t last_ = 0;    ///< … to the one before this.
  std::uint64_t stretches_ = 0;

  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::optional<decompression> child_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
};

/// A line without the \r that belongs to its end.
inline std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// The loop over the records of a reader, which has a method next(): it makes record_ the next one,
/// or returns false at the end. A second loop goes on where the first was left.
template <class Reader, class Record>
class records {
 public:
  class iterator {
   public:
    using value_type = Record;
    using difference_type = std::ptrdiff_t;
    using reference = const Record&;
    using pointer = const Record*;
    using iterator_category = std::input_iterator_tag;

    iterator() = default;
    explicit iterator(Reader& reader) : reader_(&reader) { ++*this; }
    reference operator*() const { return reader_->record_; }
    pointer operator->() const { return &reader_->record_; }
    iterator& operator++() {
      if (!reader_->next()) reader_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& a, std::default_sentinel_t) {
      return a.reader_ == nullptr;
    }

   private:
    Reader* reader_ = nullptr;
  };
  iterator begin() { return iterator(static_cast<Reader&>(*this)); }
  std::default_sentinel_t end() const { return {}; }

  /// A reader is a local variable: what keeps a frame on its rank lies in that frame.
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 protected:
  records(const std::string& path, const team& members) : text_(path, members) {}

  text text_;
  Record record_;
};

}  // namespace sojourn::readers
