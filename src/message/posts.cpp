// SPDX-License-Identifier: Apache-2.0
// Functions that other threads hand over to this rank (sojourn/waiting/post.hpp). The linker takes
// this file only for programs that do so.
#include <atomic>
#include <utility>

#include "base/check.hpp"
#include "message/dispatcher_state.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/waiting/post.hpp"

namespace sojourn::detail {

namespace {

// Values of the list while it takes nothing.
posted_function before_the_body{};
posted_function after_the_body{};
// A list, the latest first.
constinit std::atomic<posted_function*> handed_over = &before_the_body;

struct run_posted final : task {
  explicit run_posted(posted_function* f) : task{go, nullptr}, function(f) {}
  static void go(task* self) {
    posted_function* const f = static_cast<run_posted*>(self)->function;
    delete static_cast<run_posted*>(self);
    f->end(f, true);
  }
  posted_function* function;
};

/// Takes all functions out of the list, and sets it to `then`. Returns them, the earliest first.
posted_function* take_all(posted_function* then) {
  posted_function* first = nullptr;
  for (posted_function* f = handed_over.exchange(then); f != nullptr;) {
    posted_function* const before = std::exchange(f->next, first);
    first = std::exchange(f, before);
  }
  return first;
}

void open() { handed_over.store(nullptr); }

int take() {
  int taken = 0;
  for (posted_function* f = take_all(nullptr); f != nullptr; ++taken) {
    posted_function* const next = f->next;
    post_task(new run_posted(f));
    f = next;
  }
  return taken;
}

int close() {
  int dropped = 0;
  for (posted_function* f = take_all(&after_the_body); f != nullptr; ++dropped) {
    posted_function* const next = f->next;
    f->end(f, false);
    f = next;
  }
  return dropped;
}

// Set before the first thread can post.
[[maybe_unused]] const bool is_known = (dispatcher.posts = {open, take, close}, true);

}  // namespace

void post_function(posted_function* function) {
  if (in_forked_child()) refuse_outside_job("post()");
  posted_function* newest = handed_over.load(std::memory_order_relaxed);
  do {
    if (newest == &before_the_body) refuse_outside_job("post()");
    if (newest == &after_the_body) {
      throw error(
          "post() after the body of run() has ended: nothing runs there any more; let the body "
          "wait for the threads that post");
    }
    function->next = newest;
  } while (!handed_over.compare_exchange_weak(newest, function));
  dispatcher.round_calls.fetch_or(dispatcher_state::posts_wait);
  // Nothing is missed if the rank is falling asleep: it looks for posts once it has become asleep.
  (void)dispatcher.bed.wake(job.me);
}

}  // namespace sojourn::detail
