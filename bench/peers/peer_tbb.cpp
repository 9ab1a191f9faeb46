// SPDX-License-Identifier: Apache-2.0
//
// The programs of common/fork_kernels.hpp with oneTBB's task groups, on one thread: fib, fib_both,
// tak, qsort, queens, list. All groups share a context, which a group of its own would make anew in
// each frame.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "common/fork_kernels.hpp"
#include "peers/kernel_peer.hpp"

namespace {

tbb::task_group_context& context() {
  static tbb::task_group_context shared;
  return shared;
}

struct by_tbb {
  struct group {
    tbb::task_group tasks{context()};
    void join() { tasks.wait(); }
  };
  template <class T>
  struct child {
    T value;
    template <class F, class... A>
    child(group& here, F f, A... arguments) {
      here.tasks.run([=, this] { value = f(arguments...); });
    }
    T get() { return value; }
  };
};
template <>
struct by_tbb::child<void> {
  template <class F, class... A>
  child(group& here, F f, A... arguments) {
    here.tasks.run([=] { f(arguments...); });
  }
  void get() {}
};

}  // namespace

int main(int argc, char** argv) {
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  tbb::task_arena arena(1);
  return bench::run_kernel_peer(
      "oneTBB", "fib", argc, argv, [&](std::string_view operation, const bench::batch_plan& plan) {
        return arena.execute([&] { return bench::kernels::time_way<by_tbb>(operation, plan); });
      });
}
