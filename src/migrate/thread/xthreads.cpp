// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread/xthreads.hpp"

#include <array>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/threads/thread.hpp"
#include "sojourn/xthreads.h"

namespace sojourn::detail {

namespace {

/// The function and its argument as they travel to the thread's rank.
struct c_argument {
  std::uint32_t function;
  std::uint32_t bytes;
  std::array<std::byte, XT_ARGUMENT_MAX> data;
};

void run_c_function(const c_argument& given) {
  c_argument mine = given;
  auto function = reinterpret_cast<void (*)(void*)>(function_at(mine.function));
  function(mine.bytes == 0 ? nullptr : mine.data.data());
}

int ranks_per_node = 1;

/// The rank of process `pid` on node `nid`, or -1.
int rank_at(int nid, int pid) {
  if (nid < 0 || pid < 0 || pid >= xthread_processes(nid)) return -1;
  return nid * ranks_per_node + pid;
}

thread thread_of(xthread_t xptr) { return thread::of_id(reinterpret_cast<std::uintptr_t>(xptr)); }
xthread_t name_of(thread t) { return reinterpret_cast<xthread_t>(t.id()); }

XTCALL result_of(thread_refusal why) {
  switch (why) {
    case thread_refusal::none:
      return XT_OK;
    case thread_refusal::unknown:
      return XT_UNKNOWN;
    case thread_refusal::finished:
      return XT_FINISHED;
    case thread_refusal::pinned:
      return XT_PINNED;
    case thread_refusal::other_program:
      return XT_OTHER_IMAGE;
    case thread_refusal::holds_lock:
      return XT_LOCKED;
    case thread_refusal::handles_exception:
      return XT_EXCEPTION;
    default:
      return XT_BUSY;
  }
}

template <class F>
XTCALL guarded(F call) {
  try {
    call();
    return XT_OK;
  } catch (const thread_error& e) {
    return result_of(e.why());
  } catch (...) {
    return XT_FAILED;
  }
}

}  // namespace

void attach_xthreads() {
  ranks_per_node = rank_count();
  const char* text = std::getenv("SOJOURN_RANKS_PER_NODE");
  if (text == nullptr || *text == 0) return;
  char* end;
  const long value = std::strtol(text, &end, 10);
  if (*end != 0 || value < 1 || value > 65536) {
    throw error(format("SOJOURN_RANKS_PER_NODE=%s is not a number of ranks: give 1 or more", text));
  }
  ranks_per_node = static_cast<int>(value);
}

}  // namespace sojourn::detail

using namespace sojourn;

XTCALL xthread_create_at(xthread_t* xptr, int nid, int pid, void (*function)(void*),
                         const void* argument, size_t bytes) {
  int rank = detail::rank_at(nid, pid);
  if (rank < 0) return XT_NO_PLACE;
  if (bytes > XT_ARGUMENT_MAX) return XT_TOO_LONG;
  detail::c_argument given{};
  try {
    given.function = detail::function_index(reinterpret_cast<void (*)()>(function));
  } catch (const error&) {
    return XT_NO_FUNCTION;
  }
  given.bytes = static_cast<std::uint32_t>(bytes);
  if (bytes != 0) std::memcpy(given.data.data(), argument, bytes);
  *xptr = detail::name_of(spawn_on(rank, detail::run_c_function, given));
  return XT_OK;
}

XTCALL xthread_create(xthread_t* xptr, void (*function)(void*), const void* argument,
                      size_t bytes) {
  return xthread_create_at(xptr, xthread_nid(), xthread_pid(), function, argument, bytes);
}

xthread_t xthread_self(void) { return detail::name_of(self()); }

XTCALL xthread_migrate(xthread_t xptr, int nid, int pid) {
  int rank = detail::rank_at(nid, pid);
  if (rank < 0) return XT_NO_PLACE;
  return detail::guarded([=] { migrate(detail::thread_of(xptr), rank); });
}

XTCALL xthread_join(xthread_t xptr) {
  return detail::guarded([=] { detail::thread_of(xptr).join(); });
}
XTCALL xthread_detach(xthread_t xptr) {
  return detail::guarded([=] { detail::thread_of(xptr).detach(); });
}
void xthread_yield(void) { yield(); }

int xthread_nid(void) { return rank_me() / detail::ranks_per_node; }
int xthread_pid(void) { return rank_me() % detail::ranks_per_node; }
int xthread_nodes(void) {
  int each = detail::ranks_per_node;
  return (rank_count() + each - 1) / each;
}
int xthread_processes(int nid) {
  int each = detail::ranks_per_node;
  if (nid < 0 || nid >= xthread_nodes()) return 0;
  int left = rank_count() - nid * each;
  return left < each ? left : each;
}

const char* xthread_strerror(XTCALL result) {
  switch (result) {
    case XT_OK:
      return "done";
    case XT_UNKNOWN:
      return "there is no such thread: it was joined, or has ended after detach";
    case XT_FINISHED:
      return "the thread has ended";
    case XT_PINNED:
      return "the thread was started to stay on its rank";
    case XT_OTHER_IMAGE:
      return "the process runs another program";
    case XT_LOCKED:
      return "the thread holds a lock";
    case XT_EXCEPTION:
      return "the thread handles an exception";
    case XT_BUSY:
      return "the thread must stay on its rank, or waits for something that only its rank can "
             "provide";
    case XT_NO_PLACE:
      return "there is no such process or node";
    case XT_TOO_LONG:
      return "the argument of a thread is too long";
    case XT_FAILED:
      return "an exception left the thread, or it joins itself";
    case XT_NO_FUNCTION:
      return "the function is NULL, or lies in a shared library and not in this program";
    default:
      return "this is not a result of an xthread call";
  }
}
