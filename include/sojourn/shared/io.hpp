// SPDX-License-Identifier: Apache-2.0
// Shared memory given to the system and to libraries: the fourth part of sojourn/shared.hpp.
#pragma once

#include <sojourn/shared_io.h>

#include <cstddef>

#include "sojourn/activate.hpp"

namespace sojourn::shared {

/// What somebody does with memory.
enum class access : unsigned char { loads, stores };

namespace detail {
void pin(const volatile void* p, std::size_t bytes, access how);
void unpin(const volatile void* p, std::size_t bytes, access how) noexcept;
void begin_undivided(const void* scope);
void end_undivided(const void* scope) noexcept;
}  // namespace detail

/// While it lives, the pages of [p, p + bytes) are here, and allow loads, or loads and stores: for
/// system calls, io_uring, MPI, and threads that are not Sojourn's. When a fiber of this rank gets
/// a lock, leaves a barrier or the like, the stores of other ranks that it may now see are in these
/// pages before it goes on.
///
/// Pins nest. What lies outside of shared memory needs none, and is ignored. The activation whose
/// frames hold it stays on its rank.
///
/// Under `lmw` other ranks use the same pages meanwhile. Under `lsw` and `seq` a rank that wants to
/// store to a pinned page (under `seq` also one that wants to load from a page pinned for stores)
/// waits until the pin ends, so pins are like locks there. Two ranks that pin the same page take
/// turns. A pin takes its pages in ascending order; a fiber that holds several pins should take
/// them in that order, too, and should neither wait for other ranks nor touch other such pages.
///
/// Suspends while a page is elsewhere. Errors: sojourn::error when code outside of a fiber would
/// have to wait for a page.
class pinned {
 public:
  explicit pinned(const volatile void* p, std::size_t bytes, access how = access::loads)
      : p_(p), bytes_(bytes), how_(how) {
    detail::pin(p, bytes, how);
  }
  ~pinned() { detail::unpin(p_, bytes_, how_); }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;

 private:
  stay stays_;
  const volatile void* p_;
  std::size_t bytes_;
  access how_;
};

/// While it lives, an access to shared memory that waits for a page lets no other fiber of the rank
/// run. Use it around calls of libraries that an access may interrupt halfway: printf, for example,
/// holds a lock that belongs to the thread, and so does not keep out other fibers of that thread.
/// The rank answers questions about shared memory meanwhile, and does nothing else. Other waits
/// (for a mutex, a call) let other fibers run, as always.
class undivided {
 public:
  undivided() { detail::begin_undivided(this); }
  ~undivided() { detail::end_undivided(this); }
  undivided(const undivided&) = delete;
  undivided& operator=(const undivided&) = delete;

 private:
  stay stays_;
};

// The calls of the C library that take memory, where it may be shared: sojourn/shared_io.h. Each
// suspends while a page is elsewhere, and returns, or leaves in errno, what the call does.

inline ssize_t read(int fd, void* to, std::size_t bytes) {
  return sojourn_shared_read(fd, to, bytes);
}
inline ssize_t write(int fd, const void* from, std::size_t bytes) {
  return sojourn_shared_write(fd, from, bytes);
}
inline ssize_t pread(int fd, void* to, std::size_t bytes, off_t at) {
  return sojourn_shared_pread(fd, to, bytes, at);
}
inline ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t at) {
  return sojourn_shared_pwrite(fd, from, bytes, at);
}
inline ssize_t readv(int fd, const struct ::iovec* to, int count) {
  return sojourn_shared_readv(fd, to, count);
}
inline ssize_t writev(int fd, const struct ::iovec* from, int count) {
  return sojourn_shared_writev(fd, from, count);
}
inline ssize_t recv(int fd, void* to, std::size_t bytes, int flags) {
  return sojourn_shared_recv(fd, to, bytes, flags);
}
inline ssize_t recvfrom(int fd, void* to, std::size_t bytes, int flags, struct ::sockaddr* from,
                        unsigned* from_bytes) {
  return sojourn_shared_recvfrom(fd, to, bytes, flags, from, from_bytes);
}
inline ssize_t recvmsg(int fd, struct ::msghdr* message, int flags) {
  return sojourn_shared_recvmsg(fd, message, flags);
}
inline ssize_t send(int fd, const void* from, std::size_t bytes, int flags) {
  return sojourn_shared_send(fd, from, bytes, flags);
}
inline ssize_t sendto(int fd, const void* from, std::size_t bytes, int flags,
                      const struct ::sockaddr* to, unsigned to_bytes) {
  return sojourn_shared_sendto(fd, from, bytes, flags, to, to_bytes);
}
inline ssize_t sendmsg(int fd, const struct ::msghdr* message, int flags) {
  return sojourn_shared_sendmsg(fd, message, flags);
}
inline std::size_t fread(void* to, std::size_t each, std::size_t count, std::FILE* stream) {
  return sojourn_shared_fread(to, each, count, stream);
}
inline std::size_t fwrite(const void* from, std::size_t each, std::size_t count,
                          std::FILE* stream) {
  return sojourn_shared_fwrite(from, each, count, stream);
}

}  // namespace sojourn::shared
