// SPDX-License-Identifier: Apache-2.0
// What the code of a rank knows without a call: which rank this is, where its heap lies, and the
// open marks of the running piece. A rank has one thread and its program is linked
// at fixed addresses, so these are plain globals. They are right also just after a migration,
// because each rank has its own copy at the same address.
#pragma once

#include <cstdint>

#include "sojourn/detail/counts.hpp"

/// 1: when a child blocks, forks are found by the exception tables of the C++ runtime
/// (fiber/boundary.hpp). 0: each fork leaves a mark in the frame of its caller.
#if defined(__x86_64__)
#define SOJOURN_FORKS_BY_TABLES 1
#else
#define SOJOURN_FORKS_BY_TABLES 0
#endif

namespace sojourn::detail {

struct mark;
struct mutex_state;

/// The C++ runtime's record of exceptions in flight (two words after __cxa_get_globals()).
struct exception_globals {
  void* caught;
  unsigned uncaught;
};

/// Something in a frame that must not leave its rank: a `stay`, an open `finish`, a method on a
/// copy.
struct hold {
  enum class kind : std::uint8_t {
    stay,
    finish,  ///< `of` is the scope around it.
    copy     ///< A method runs on a copy of an object (copies.hpp), the copy_block `of`.
  };
  hold* outer;
  kind what = kind::stay;
  void* of = nullptr;
};

struct running_state {
  mark* youngest;                 ///< Youngest open mark; older ones by mark::outer.
  const void* base;               ///< Where the running piece began: the address of its base mark.
  hold* holds;                    ///< Youngest hold; older ones by hold::outer.
  exception_globals* exceptions;  ///< At the same address in all ranks.
  unsigned static_inits;          ///< Function-local statics being initialised now.
  unsigned watched;      ///< Checked mode: pthread mutexes held, and promises, on this rank.
  mutex_state* mutexes;  ///< Mutexes that the running fiber holds, the latest first.
  /// Equal to counts.forks as long as every open fork of the running piece is in the chain
  /// `youngest`, or has a context of its own: set to counts.forks when that is known, and
  /// incremented together with it by each such fork. Any other fork increments counts.forks alone.
  std::uint64_t forks_before;
};
extern running_state running;

/// True when the running piece may have an open fork whose mark is not in the chain
/// running.youngest.
[[gnu::always_inline]] inline bool may_have_forks() {
  return SOJOURN_FORKS_BY_TABLES != 0 && counts.forks != running.forks_before;
}

/// Lives while a method runs on a local object. The method's frames hold `this`, so they stay: the
/// gate asks how many methods have been opened since the mark at which frames would be cut off. One
/// word (counts.methods) has that depth in its low bits, and above these the number of all such
/// calls so far: counting both takes two instructions a call.
struct method_guard {
  static constexpr unsigned depth_bits = 24;
  static constexpr std::uint64_t depth_mask = (std::uint64_t{1} << depth_bits) - 1;

  [[gnu::always_inline]] method_guard() { counts.methods += (std::uint64_t{1} << depth_bits) + 1; }
  [[gnu::always_inline]] ~method_guard() { --counts.methods; }
  method_guard(const method_guard&) = delete;
  method_guard& operator=(const method_guard&) = delete;
};
/// The same for a method that a handler calls, which counts as no local call.
struct handled_method_guard {
  [[gnu::always_inline]] handled_method_guard() { ++counts.methods; }
  [[gnu::always_inline]] ~handled_method_guard() { --counts.methods; }
  handled_method_guard(const handled_method_guard&) = delete;
  handled_method_guard& operator=(const handled_method_guard&) = delete;
};
/// The same for a call that reads a version of a replicated object (replicas.hpp). It counts once
/// more in the upper bits of the depth: so it is known which fibers read. (With very many methods
/// or reads inside each other these bits are wrong, but the depth is 0 only when none is open.)
struct read_guard {
  static constexpr unsigned reads_shift = 16;
  static constexpr std::uint64_t one_read = (std::uint64_t{1} << reads_shift) + 1;

  [[gnu::always_inline]] read_guard() { counts.methods += one_read; }
  [[gnu::always_inline]] ~read_guard() { counts.methods -= one_read; }
  read_guard(const read_guard&) = delete;
  read_guard& operator=(const read_guard&) = delete;
};
inline std::uint32_t method_depth() {
  return static_cast<std::uint32_t>(counts.methods & method_guard::depth_mask);
}
inline void set_method_depth(std::uint32_t depth) {
  counts.methods = (counts.methods & ~method_guard::depth_mask) | depth;
}

/// The part of a finish scope's account on this rank that calls look at.
struct scope_view {
  std::uint64_t id;  ///< The same on all ranks, and not used again.
  bool is_window;    ///< Each call that leaves it counts by itself, so calls are not bundled.
};
/// The part of a fiber's descriptor that calls look at; the scheduler knows the rest.
struct fiber_view {
  void* scope = nullptr;  ///< Finish scope it counts in: its scope_view.
};
/// The running fiber; null on the scheduler's own stack, and in every thread but the rank's.
/// (Thread-local for the sake of those: one thread runs all fibers of a rank, and the memory of its
/// thread-local variables lies at the same address in every rank.)
#ifdef __PIC__
[[gnu::tls_model("initial-exec")]]
#else
[[gnu::tls_model("local-exec")]]
#endif
extern constinit thread_local fiber_view* running_fiber;

/// Ends the program if this is not the rank's thread.
[[gnu::cold]] void refuse_other_thread();
/// For what changes the state of this rank. Two instructions, for only fibers do so often.
[[gnu::always_inline]] inline void check_thread() {
  if (running_fiber == nullptr) [[unlikely]]
    refuse_other_thread();
}

struct piece;
/// Something that uses frames of a fiber which goes on meanwhile: for example a child whose
/// function captured its caller's variables. An entry in that fiber's list, the lowest
/// `refers_under` first.
struct referrer {
  piece* refers_to = nullptr;      ///< Has the frames in use; null: only its own are used.
  std::uint64_t refers_under = 0;  ///< End of the frames that lie under the same mark as these.
  referrer* next_referrer = nullptr;
  referrer** referred_by = nullptr;  ///< The link in that list that points to this.
};

/// The address of the running piece's youngest open mark; 0 when there is none.
std::uint64_t find_youngest_mark();
[[gnu::always_inline]] inline std::uint64_t youngest_mark() {
  if (may_have_forks()) [[unlikely]]
    return find_youngest_mark();
  return reinterpret_cast<std::uint64_t>(running.youngest);
}

/// True when the running piece has a mark in a frame younger than the one that `variable` lies in.
inline bool has_mark_in_frame_below(const void* variable) {
  return running.youngest != nullptr && reinterpret_cast<std::uintptr_t>(running.youngest) <
                                            reinterpret_cast<std::uintptr_t>(variable);
}
/// The same for open forks whose marks lie in the exception tables. Walks the frames in between,
/// unless links tell (fiber/fork_links.hpp).
bool has_fork_below(const void* variable);

struct job_view {
  int me = 0;
  int count = 1;
  int first_near = 0;  ///< The ranks of this host follow each other.
  int near = 1;
  std::uint64_t my_heap = 0;  ///< First address of this rank's heap partition.
  std::uint64_t my_heap_bytes = 0;
  /// my_heap_bytes; but 0 in checked mode, so that every access takes the path of remote accesses,
  /// where checks are made. So local accesses need no test for checked mode.
  std::uint64_t quick_heap_bytes = 0;
  std::uint64_t reach = 0;        ///< First address of the heaps that are mapped here …
  std::uint64_t reach_bytes = 0;  ///< … this rank's own, or those of all ranks of this host.
  /// First address of rank 0's partition; before the job, one that makes every address foreign.
  std::uint64_t heap = std::uint64_t{1} << 63;
  unsigned heap_shift = 63;  ///< log2 of a partition's bytes.
  bool heap_shared = false;  ///< The heaps of the other ranks of this host are mapped here.
  /// 0, or what is to be done with the words at accesses (override_access).
  std::uint8_t overrides = 0;
  static constexpr std::uint8_t overrides_words = 1;  ///< SOJOURN_VIA names call sites.
  static constexpr std::uint8_t counts_calls = 2;     ///< SOJOURN_STATS asks what words are used.
  bool checked = false;                               ///< Checked mode is on.
  /// Objects that are here may have copies elsewhere (copies.hpp). If one of them was made here,
  /// quick_heap_bytes is 0.
  bool has_copied = false;
  /// Objects are here that were made elsewhere, or the other way round, or some were (moves.hpp).
  bool has_moved = false;
  std::uint64_t copies = 0;  ///< First address of the copies that are here.
  std::uint64_t copies_bytes = 0;
};
extern job_view job;

/// True when checked mode is on. Never if the program was built without it (SOJOURN_NO_CHECKED).
[[gnu::always_inline]] inline bool checked() {
#ifdef SOJOURN_NO_CHECKED
  return false;
#else
  return job.checked;
#endif
}

}  // namespace sojourn::detail
