// SPDX-License-Identifier: Apache-2.0
#include "base/owned_descriptors.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>

// The C library's own names for close() and dup2(). Calls of the program use other names.
extern "C" int __close(int descriptor);
extern "C" int __dup2(int from, int to) noexcept;

namespace sojourn::detail {

namespace {

/// A bit for each descriptor, because any thread and any signal handler may call close().
/// Descriptors beyond this number cannot be owned; few systems allow a process so many.
constexpr unsigned most = 65'536;
std::atomic<std::uint64_t> owned[most / 64];

/// The process to which the owned descriptors belong. Children of fork(), vfork() and the like have
/// others, or copies.
std::atomic<pid_t> owner;

std::uint64_t bit(unsigned descriptor) { return std::uint64_t{1} << (descriptor % 64); }

}  // namespace

void own_descriptor(int descriptor) {
  owner.store(getpid(), std::memory_order_relaxed);
  const auto d = static_cast<unsigned>(descriptor);
  if (d < most) owned[d / 64].fetch_or(bit(d), std::memory_order_relaxed);
}

void close_owned(int descriptor) {
  const auto d = static_cast<unsigned>(descriptor);
  if (d < most) owned[d / 64].fetch_and(~bit(d), std::memory_order_relaxed);
  __close(descriptor);
}

}  // namespace sojourn::detail

#if defined(__SANITIZE_THREAD__)
#define SOJOURN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SOJOURN_TSAN 1
#endif
#endif

// The thread sanitizer replaces these functions itself.
#ifndef SOJOURN_TSAN

namespace sojourn::detail {

namespace {

bool is_owned(unsigned descriptor) {
  return descriptor < most &&
         (owned[descriptor / 64].load(std::memory_order_relaxed) & bit(descriptor)) != 0 &&
         getpid() == owner.load(std::memory_order_relaxed);
}

/// The first owned descriptor from `first` to `last`.
std::optional<unsigned> next_owned(unsigned first, unsigned last) {
  for (unsigned d = first; d <= last && d < most; ++d) {
    if (owned[d / 64].load(std::memory_order_relaxed) == 0) {
      d |= 63;
    } else if (is_owned(d)) {
      return d;
    }
  }
  return std::nullopt;
}

/// Used when the system has no close_range(), or does not allow it.
void close_one_by_one(unsigned first, unsigned last) {
  DIR* const all = opendir("/proc/self/fd");
  if (all != nullptr) {
    while (const dirent* entry = readdir(all)) {
      const auto d = static_cast<unsigned>(std::strtoul(entry->d_name, nullptr, 10));
      if (entry->d_name[0] != '.' && d >= first && d <= last &&
          d != static_cast<unsigned>(dirfd(all)))
        __close(static_cast<int>(d));
    }
    closedir(all);
    return;
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, most));
  for (unsigned d = first; d <= last && d < end; ++d) __close(static_cast<int>(d));
}

/// What the system call close_range() does. Linux has it since 5.9.
int close_all(unsigned first, unsigned last, int flags) {
#ifdef SYS_close_range
  const long result = syscall(SYS_close_range, first, last, flags);
  if (result == 0 || flags != 0 || first > last) return static_cast<int>(result);
#endif
  close_one_by_one(first, last);
  return 0;
}

/// Does what close_range() does, but leaves out owned descriptors.
int close_others(unsigned first, unsigned last, int flags) {
  while (const auto kept = first <= last ? next_owned(first, last) : std::nullopt) {
    if (*kept > first && close_all(first, *kept - 1, flags) != 0) return -1;
    if (*kept == last) return 0;
    first = *kept + 1;
  }
  return close_all(first, last, flags);
}

/// Fails as dup2() and dup3() do for a number that no descriptor can have. (After EBUSY, programs
/// would try again.)
int refuse_to_replace() {
  errno = EBADF;
  return -1;
}

}  // namespace

}  // namespace sojourn::detail

// Libraries call these functions, too: the dynamic linker prefers them to those of the C library,
// which have the same names. They are weak, because a program may define its own.

extern "C" [[gnu::weak]] int close(int descriptor) {
  if (!sojourn::detail::is_owned(static_cast<unsigned>(descriptor))) return __close(descriptor);
  errno = EBADF;
  return -1;
}

extern "C" [[gnu::weak]] int close_range(unsigned first, unsigned last, int flags) noexcept {
  return sojourn::detail::close_others(first, last, flags);
}

extern "C" [[gnu::weak]] void closefrom(int lowest) noexcept {
  sojourn::detail::close_others(static_cast<unsigned>(std::max(lowest, 0)), ~0u, 0);
}

extern "C" [[gnu::weak]] int dup2(int from, int to) noexcept {
  using namespace sojourn::detail;
  return is_owned(static_cast<unsigned>(to)) ? refuse_to_replace() : __dup2(from, to);
}

extern "C" [[gnu::weak]] int dup3(int from, int to, int flags) noexcept {
  using namespace sojourn::detail;
  if (is_owned(static_cast<unsigned>(to))) return refuse_to_replace();
  return static_cast<int>(syscall(SYS_dup3, from, to, flags));
}

#endif
