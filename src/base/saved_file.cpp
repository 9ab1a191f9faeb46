// SPDX-License-Identifier: Apache-2.0
#include "base/saved_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t buffer_bytes = 1u << 20;
constexpr std::uint64_t first_word = 0x31647661736a6f73;  // "sojsavd1"

struct trailer {
  std::uint64_t bytes;  ///< Of the whole file.
  std::uint64_t checksum;
};

/// Each step is invertible, so a change of any one word changes the sum.
std::uint64_t add_to_checksum(std::uint64_t sum, const std::byte* from, std::size_t size) {
  for (; size >= 8; from += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 32;
  }
  if (size > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, size);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  }
  return sum;
}

}  // namespace

file_writer::file_writer(std::string path)
    : path_(std::move(path)),
      buffer_(buffer_bytes),
      fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  if (fd_ < 0) failed("created");
  // Overwrites an existing file only if it is this user's. Afterwards only this user may read it.
  struct stat status{};
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
      fchmod(fd_, 0600) != 0 || ftruncate(fd_, 0) != 0) {
    close(fd_);
    throw error(
        format("%s exists already and is not a regular file of this user: choose another name",
               path_.c_str()));
  }
  put(first_word);
}

file_writer::~file_writer() {
  close(fd_);
  if (!finished_) unlink(path_.c_str());
}

void file_writer::failed(const char* what) const {
  throw error(format("%s cannot be %s: %s", path_.c_str(), what, std::strerror(errno)));
}

void file_writer::write_out(const std::byte* from, std::size_t size) {
  while (size > 0) {
    ssize_t n = write(fd_, from, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failed("written");
    from += n;
    size -= static_cast<std::size_t>(n);
  }
}

/// Called only with a full buffer or at the end, because the checksum is computed by words.
void file_writer::flush() {
  checksum_ = add_to_checksum(checksum_, buffer_.data(), filled_);
  write_out(buffer_.data(), filled_);
  written_ += filled_;
  filled_ = 0;
}

void file_writer::bytes(const void* from, std::size_t size) {
  const auto* next = static_cast<const std::byte*>(from);
  while (size > 0) {
    std::size_t n = std::min(size, buffer_.size() - filled_);
    std::memcpy(buffer_.data() + filled_, next, n);
    filled_ += n;
    next += n;
    size -= n;
    if (filled_ == buffer_.size()) flush();
  }
}

void file_writer::finish() {
  flush();
  trailer t{written_ + sizeof(trailer), checksum_};
  write_out(reinterpret_cast<const std::byte*>(&t), sizeof t);
  if (fsync(fd_) != 0) failed("written");
  finished_ = true;
}

file_reader::file_reader(const std::string& path) : path_(path) {
  // O_NONBLOCK, because opening a pipe must not wait for its writer. A pipe is refused below.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw error(format("%s cannot be opened (%s)", path.c_str(), std::strerror(errno)));
  struct stat status{};
  bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  auto size = static_cast<std::size_t>(status.st_size);
  void* memory = MAP_FAILED;
  if (is_file && size >= sizeof first_word + sizeof(trailer)) {
    memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  int reason = errno;
  close(fd);
  if (!is_file) throw error(format("%s is not a regular file", path.c_str()));
  if (size < sizeof first_word + sizeof(trailer)) {
    throw error(format("%s is incomplete: it has only %zu bytes", path.c_str(), size));
  }
  if (memory == MAP_FAILED) {
    throw error(format("%s cannot be read (%s)", path.c_str(), std::strerror(reason)));
  }
  first_ = static_cast<std::byte*>(memory);
  mapped_ = size;
  end_ = size - sizeof(trailer);
  std::uint64_t opening;
  trailer t;
  std::memcpy(&opening, first_, sizeof opening);
  std::memcpy(&t, first_ + end_, sizeof t);
  const char* wrong = nullptr;
  if (opening != first_word) {
    wrong = "was not written by Sojourn";
  } else if (t.bytes != size) {
    wrong = "is incomplete: its end is missing";
  } else if (add_to_checksum(0, first_, end_) != t.checksum) {
    wrong = "is damaged: its checksum does not match its content";
  }
  if (wrong != nullptr) {
    munmap(first_, mapped_);
    throw error(format("%s %s", path.c_str(), wrong));
  }
  at_ = sizeof first_word;
}

file_reader::~file_reader() { munmap(first_, mapped_); }

void file_reader::bytes(void* to, std::size_t size) {
  if (size > end_ - at_) throw error(path_ + " is too short: another version of Sojourn wrote it");
  if (size > 0) std::memcpy(to, first_ + at_, size);
  at_ += size;
}

void sync_folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  // Some file systems cannot sync a folder; nothing better is possible there.
  (void)!fsync(fd);
  close(fd);
}

}  // namespace sojourn::detail
