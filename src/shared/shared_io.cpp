// SPDX-License-Identifier: Apache-2.0
// System calls and stdio on shared memory: sojourn/shared_io.h.
#include <sojourn/shared_io.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "memory/address_map.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/shared/io.hpp"

// With --wrap=NAME the linker names the library's function __real_NAME, and uses the functions of
// this file as NAME. So these must call __real_NAME then. Without --wrap there is no __real_NAME.
#define SOJOURN_LIBRARY(name)                                    \
  extern "C" [[gnu::weak]] decltype(::name) __real_##name;       \
  namespace {                                                    \
  decltype(::name)* library_##name() {                           \
    return &__real_##name != nullptr ? &__real_##name : &::name; \
  }                                                              \
  }
SOJOURN_LIBRARY(read)
SOJOURN_LIBRARY(write)
SOJOURN_LIBRARY(pread)
SOJOURN_LIBRARY(pwrite)
SOJOURN_LIBRARY(readv)
SOJOURN_LIBRARY(writev)
SOJOURN_LIBRARY(recv)
SOJOURN_LIBRARY(recvfrom)
SOJOURN_LIBRARY(recvmsg)
SOJOURN_LIBRARY(send)
SOJOURN_LIBRARY(sendto)
SOJOURN_LIBRARY(sendmsg)
SOJOURN_LIBRARY(fread)
SOJOURN_LIBRARY(fwrite)
SOJOURN_LIBRARY(fgets)
SOJOURN_LIBRARY(fputs)
SOJOURN_LIBRARY(puts)
SOJOURN_LIBRARY(vfscanf)
SOJOURN_LIBRARY(vfprintf)
#undef SOJOURN_LIBRARY

namespace {

using sojourn::detail::addresses;
using sojourn::shared::access;
using sojourn::shared::pinned;
using sojourn::shared::undivided;

bool is_shared(const void* p) { return addresses.in_shared(reinterpret_cast<std::uint64_t>(p)); }

/// Makes the call with one buffer pinned.
template <class Call>
auto with_pinned(const void* p, std::size_t bytes, access how, Call call) {
  if (!is_shared(p)) return call();
  const pinned buffer(p, bytes, how);
  return call();
}

struct buffer {
  const void* at;
  std::size_t bytes;
  access how;
};

/// Pins several, in ascending order.
class pinned_buffers {
 public:
  void add(const void* at, std::size_t bytes, access how) {
    if (is_shared(at)) all_.push_back({at, bytes, how});
  }
  void pin() {
    std::sort(all_.begin(), all_.end(),
              [](const buffer& a, const buffer& b) { return a.at < b.at; });
    for (const buffer& b : all_) {
      sojourn::shared::detail::pin(b.at, b.bytes, b.how);
      ++pinned_;
    }
  }
  pinned_buffers() = default;
  ~pinned_buffers() {
    while (pinned_ != 0) {
      const buffer& b = all_[--pinned_];
      sojourn::shared::detail::unpin(b.at, b.bytes, b.how);
    }
  }
  pinned_buffers(const pinned_buffers&) = delete;
  pinned_buffers& operator=(const pinned_buffers&) = delete;

 private:
  sojourn::stay stays_;
  std::vector<buffer> all_;
  std::size_t pinned_ = 0;
};

/// The array itself is copied: it may lie in shared memory.
std::vector<iovec> copy_of(const iovec* first, std::size_t count) { return {first, first + count}; }

ssize_t with_vector(int fd, const iovec* first, int count, access how,
                    ssize_t (*call)(int, const iovec*, int)) {
  if (count <= 0 || count > 1024) return call(fd, first, count);  // the system refuses that
  const std::vector<iovec> all = copy_of(first, static_cast<std::size_t>(count));
  pinned_buffers buffers;
  for (const iovec& v : all) buffers.add(v.iov_base, v.iov_len, how);
  buffers.pin();
  return call(fd, all.data(), count);
}

/// The buffers of a message, and the message with a copy of the array that names them.
class message_buffers {
 public:
  message_buffers(const msghdr& m, access how) : message_(m) {
    if (m.msg_iovlen > 1024) return;  // the system refuses that
    vector_ = copy_of(m.msg_iov, m.msg_iovlen);
    message_.msg_iov = vector_.data();
    for (const iovec& v : vector_) buffers_.add(v.iov_base, v.iov_len, how);
    buffers_.add(m.msg_name, m.msg_namelen, how);
    buffers_.add(m.msg_control, m.msg_controllen, how);
    buffers_.pin();
  }
  msghdr& message() { return message_; }

 private:
  msghdr message_;
  std::vector<iovec> vector_;
  pinned_buffers buffers_;
};

}  // namespace

extern "C" {

ssize_t sojourn_shared_read(int fd, void* to, size_t bytes) {
  return with_pinned(to, bytes, access::stores, [&] { return library_read()(fd, to, bytes); });
}
ssize_t sojourn_shared_write(int fd, const void* from, size_t bytes) {
  return with_pinned(from, bytes, access::loads, [&] { return library_write()(fd, from, bytes); });
}
ssize_t sojourn_shared_pread(int fd, void* to, size_t bytes, off_t at) {
  return with_pinned(to, bytes, access::stores, [&] { return library_pread()(fd, to, bytes, at); });
}
ssize_t sojourn_shared_pwrite(int fd, const void* from, size_t bytes, off_t at) {
  return with_pinned(from, bytes, access::loads,
                     [&] { return library_pwrite()(fd, from, bytes, at); });
}
ssize_t sojourn_shared_readv(int fd, const struct iovec* to, int count) {
  return with_vector(fd, to, count, access::stores, library_readv());
}
ssize_t sojourn_shared_writev(int fd, const struct iovec* from, int count) {
  return with_vector(fd, from, count, access::loads, library_writev());
}

ssize_t sojourn_shared_recv(int fd, void* to, size_t bytes, int flags) {
  return with_pinned(to, bytes, access::stores,
                     [&] { return library_recv()(fd, to, bytes, flags); });
}
ssize_t sojourn_shared_recvfrom(int fd, void* to, size_t bytes, int flags, struct sockaddr* from,
                                unsigned int* from_bytes) {
  if (from == nullptr || from_bytes == nullptr)
    return with_pinned(to, bytes, access::stores,
                       [&] { return library_recvfrom()(fd, to, bytes, flags, from, from_bytes); });
  unsigned int length = *from_bytes;
  ssize_t got = 0;
  {
    pinned_buffers buffers;
    buffers.add(to, bytes, access::stores);
    buffers.add(from, length, access::stores);
    buffers.pin();
    got = library_recvfrom()(fd, to, bytes, flags, from, &length);
  }
  if (got >= 0) *from_bytes = length;
  return got;
}
ssize_t sojourn_shared_recvmsg(int fd, struct msghdr* message, int flags) {
  ssize_t got = 0;
  msghdr left;
  {
    message_buffers buffers(*message, access::stores);
    got = library_recvmsg()(fd, &buffers.message(), flags);
    left = buffers.message();
  }
  if (got < 0) return got;
  message->msg_namelen = left.msg_namelen;
  message->msg_controllen = left.msg_controllen;
  message->msg_flags = left.msg_flags;
  return got;
}
ssize_t sojourn_shared_send(int fd, const void* from, size_t bytes, int flags) {
  return with_pinned(from, bytes, access::loads,
                     [&] { return library_send()(fd, from, bytes, flags); });
}
ssize_t sojourn_shared_sendto(int fd, const void* from, size_t bytes, int flags,
                              const struct sockaddr* to, unsigned int to_bytes) {
  pinned_buffers buffers;
  buffers.add(from, bytes, access::loads);
  buffers.add(to, to_bytes, access::loads);
  buffers.pin();
  return library_sendto()(fd, from, bytes, flags, to, to_bytes);
}
ssize_t sojourn_shared_sendmsg(int fd, const struct msghdr* message, int flags) {
  message_buffers buffers(*message, access::loads);
  return library_sendmsg()(fd, &buffers.message(), flags);
}

// Pinned, although a fault inside the library would only wait: a long fread does not use the
// stream's buffer, but has the system read straight to memory, and a system call would fail.
size_t sojourn_shared_fread(void* to, size_t each, size_t count, FILE* stream) {
  const undivided alone;
  return with_pinned(to, each * count, access::stores,
                     [&] { return library_fread()(to, each, count, stream); });
}
size_t sojourn_shared_fwrite(const void* from, size_t each, size_t count, FILE* stream) {
  const undivided alone;
  return with_pinned(from, each * count, access::loads,
                     [&] { return library_fwrite()(from, each, count, stream); });
}
char* sojourn_shared_fgets(char* to, int bytes, FILE* stream) {
  const undivided alone;
  return library_fgets()(to, bytes, stream);
}
// A long text, too, is written by the system straight from memory.
int sojourn_shared_fputs(const char* text, FILE* stream) {
  const undivided alone;
  return with_pinned(text, is_shared(text) ? std::char_traits<char>::length(text) : 0,
                     access::loads, [&] { return library_fputs()(text, stream); });
}
int sojourn_shared_puts(const char* text) {
  const undivided alone;
  return with_pinned(text, is_shared(text) ? std::char_traits<char>::length(text) : 0,
                     access::loads, [&] { return library_puts()(text); });
}
int sojourn_shared_vfscanf(FILE* stream, const char* format, va_list to) {
  const undivided alone;
  return library_vfscanf()(stream, format, to);
}
int sojourn_shared_vfprintf(FILE* stream, const char* format, va_list values) {
  const undivided alone;
  return library_vfprintf()(stream, format, values);
}
int sojourn_shared_fscanf(FILE* stream, const char* format, ...) {
  va_list to;
  va_start(to, format);
  const int got = sojourn_shared_vfscanf(stream, format, to);
  va_end(to);
  return got;
}
int sojourn_shared_scanf(const char* format, ...) {
  va_list to;
  va_start(to, format);
  const int got = sojourn_shared_vfscanf(stdin, format, to);
  va_end(to);
  return got;
}
int sojourn_shared_fprintf(FILE* stream, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int written = sojourn_shared_vfprintf(stream, format, values);
  va_end(values);
  return written;
}
int sojourn_shared_printf(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int written = sojourn_shared_vfprintf(stdout, format, values);
  va_end(values);
  return written;
}

void sojourn_shared_pin(const void* p, size_t bytes, int stores) {
  sojourn::shared::detail::pin(p, bytes, stores != 0 ? access::stores : access::loads);
}
void sojourn_shared_unpin(const void* p, size_t bytes, int stores) {
  sojourn::shared::detail::unpin(p, bytes, stores != 0 ? access::stores : access::loads);
}

}  // extern "C"

namespace sojourn::shared::detail {

using sojourn::detail::pages::memory;
using sojourn::detail::pages::shared_memory_has_begun;

namespace {

sojourn::detail::pages::access access_of(access how) {
  return how == access::stores ? sojourn::detail::pages::access::store
                               : sojourn::detail::pages::access::load;
}

}  // namespace

void pin(const volatile void* p, std::size_t bytes, access how) {
  if (!addresses.in_shared(reinterpret_cast<std::uint64_t>(p))) return;
  const stay until_pinned;  // a fiber that waits for a page does so on this rank
  memory().pin(reinterpret_cast<std::uint64_t>(p), bytes, access_of(how),
               reinterpret_cast<std::uint64_t>(__builtin_return_address(0)));
}

void unpin(const volatile void* p, std::size_t bytes, access how) noexcept {
  if (!addresses.in_shared(reinterpret_cast<std::uint64_t>(p))) return;
  const int saved = errno;
  memory().unpin(reinterpret_cast<std::uint64_t>(p), bytes, access_of(how));
  errno = saved;
}

void begin_undivided(const void* scope) {
  if (shared_memory_has_begun()) memory().begin_undivided(reinterpret_cast<std::uint64_t>(scope));
}
void end_undivided(const void* scope) noexcept {
  if (shared_memory_has_begun()) memory().end_undivided(reinterpret_cast<std::uint64_t>(scope));
}

}  // namespace sojourn::shared::detail
