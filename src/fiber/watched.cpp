// SPDX-License-Identifier: Apache-2.0
#include "fiber/watched.hpp"

#include <pthread.h>

#include <vector>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/user_frames.hpp"
#include "memory/address_map.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/nonblocking.hpp"

namespace sojourn::detail {

namespace {

struct watched {
  watched_kind kind;
  const void* what;
  std::uint64_t frame;
  std::uint64_t code;
};

// Oldest first. One list for all fibers of this rank, because one thread runs them all.
std::vector<watched>& open() {
  static std::vector<watched> list;
  return list;
}

}  // namespace

void watch(watched_kind kind, const void* what, std::uint64_t frame, std::uint64_t code) {
  open().push_back({kind, what, frame, code});
  ++running.watched;
}

void unwatch(watched_kind kind, const void* what) {
  for (std::size_t i = open().size(); i-- > 0;) {
    if (open()[i].kind != kind || open()[i].what != what) continue;
    open().erase(open().begin() + static_cast<std::ptrdiff_t>(i));
    --running.watched;
    return;
  }
}

void check_watched(std::uint64_t sp, std::uint64_t hi, const char* doing) {
  for (const watched& w : open()) {
    if (w.frame < sp || w.frame >= hi) continue;
    std::string function = function_name(w.code);
    if (is_excused(function)) continue;
    if (w.kind == watched_kind::mutex) {
      die("`%s` %s while it holds a mutex (0x%llx): another fiber that locks it stops this rank "
          "for ever; unlock it first",
          function.c_str(), doing, reinterpret_cast<unsigned long long>(w.what));
    }
    die("`%s` promised not to block (sojourn::nonblocking) and %s: take back the promise, or "
        "leave what waits to its caller",
        function.c_str(), doing);
  }
}

}  // namespace sojourn::detail

namespace sojourn {

void nonblocking<detail::this_scope>::promise() {
  if (detail::running_piece() == nullptr) return;
  open_ = true;
  auto code = reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
  detail::watch(detail::watched_kind::nonblocking, this, reinterpret_cast<std::uint64_t>(this),
                code);
}

}  // namespace sojourn

#ifndef SOJOURN_NO_CHECKED
namespace sojourn::detail {

namespace {

void locked(pthread_mutex_t* mutex) {
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  // Mutexes of other threads do not concern the fibers.
  if (running_piece() == nullptr || !addresses.in_stacks(here)) return;
  // Mutexes that are locked by the walk below or by its calls of malloc are not watched.
  static bool looking = false;
  if (looking) return;
  looking = true;
  watch(watched_kind::mutex, mutex, here, user_code(running_piece()->hi));
  looking = false;
}

void unlocked(pthread_mutex_t* mutex) {
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (running.watched != 0 && addresses.in_stacks(here)) unwatch(watched_kind::mutex, mutex);
}

}  // namespace

}  // namespace sojourn::detail

using namespace sojourn::detail;

extern "C" {
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  int failure = __real_pthread_mutex_lock(mutex);
  if (checked() && failure == 0) [[unlikely]]
    locked(mutex);
  return failure;
}
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  int failure = __real_pthread_mutex_trylock(mutex);
  if (checked() && failure == 0) [[unlikely]]
    locked(mutex);
  return failure;
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (checked()) [[unlikely]]
    unlocked(mutex);
  return __real_pthread_mutex_unlock(mutex);
}
}
#endif
