// SPDX-License-Identifier: Apache-2.0
// Work for the dispatcher of this rank. A task runs like a message handler: on a spare stack, and
// it becomes a fiber only when it blocks.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "sojourn/detail/asan.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// Makes a finish scope count one more computation.
void count_in_scope(void* scope);
/// Returns the running fiber's finish scope, or null. The scope counts one more computation: the
/// task that is to be posted.
inline void* join_scope() {
  void* scope = running_fiber != nullptr ? running_fiber->scope : nullptr;
  if (scope != nullptr) count_in_scope(scope);
  return scope;
}

/// Memory of the runtime, so that an address of it which is left on a stack is not taken for a
/// pointer of the program. Never given back. Throws std::bad_alloc.
void* memory_for_short_tasks(std::size_t bytes);

/// Memory of short tasks. What one task gives back, the next of about the same size takes; it keeps
/// as much as was ever in use at once.
class task_memory {
 public:
  /// Throws std::bad_alloc.
  void* take(std::size_t bytes) {
    const std::size_t size = place(bytes);
    if (size >= free_.size()) return ::operator new(bytes);
    if (free_[size] == nullptr) return memory_for_short_tasks((size + 1) * unit);
    return std::exchange(free_[size], free_[size]->next);
  }
  /// `bytes`: as many as were asked for.
  void give_back(void* memory, std::size_t bytes) {
    const std::size_t size = place(bytes);
    if (size >= free_.size()) return ::operator delete(memory, bytes);
    free_[size] = ::new (memory) free_block{free_[size]};
  }

 private:
  static constexpr std::size_t unit = 64;
  struct free_block {
    free_block* next;
  };
  static constexpr std::size_t place(std::size_t bytes) { return (bytes - 1) / unit; }

  std::array<free_block*, 4> free_{};
};
inline task_memory memory_of_tasks;

/// Base of what a task works on.
struct task {
  void (*run)(task* self);
  void* scope;  ///< The scope in which join_scope() counted it.
  task* next = nullptr;
  referrer* refers = nullptr;  ///< Not null: it uses frames of the fiber that posted it.

#if !SOJOURN_ASAN  // The sanitizer finds uses of freed memory, but not of memory kept here.
  static void* operator new(std::size_t bytes) { return memory_of_tasks.take(bytes); }
  static void operator delete(void* memory, std::size_t bytes) {
    memory_of_tasks.give_back(memory, bytes);
  }
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
  }
  static void operator delete(void* memory, std::size_t bytes, std::align_val_t alignment) {
    ::operator delete(memory, bytes, alignment);
  }
#endif
};

/// Tasks that wait to run, linked by task::next.
struct task_queue {
  task* first = nullptr;
  task* last = nullptr;
};
extern task_queue posted;

/// Calls t->run(t) soon on this rank, once, on a stack of its own.
inline void post_task(task* t) {
  t->next = nullptr;
  (posted.first == nullptr ? posted.first : posted.last->next) = t;
  posted.last = t;
}
/// The same, but the task runs before all that were posted so far.
inline void post_task_first(task* t) {
  t->next = posted.first;
  if (posted.first == nullptr) posted.last = t;
  posted.first = t;
}

/// Makes `tie`, which belongs to a task that is about to be posted, refer to the running fiber's
/// frames: they stay on this rank, and are in place while the task runs.
void refer_to_caller(referrer& tie);

/// Makes `id` a ticket that is at home on this rank. If it is at home elsewhere, asks that rank to
/// forward the result.
void ticket_adopt(ticket_id& id);

/// fn(f.get()), or f.get(), fn() when there is no value.
template <class F, class Future>
decltype(auto) call_with(F& fn, Future& f) {
  if constexpr (std::is_void_v<typename Future::value_type>) {
    f.get();
    return fn();
  } else {
    return fn(f.get());
  }
}

}  // namespace sojourn::detail
