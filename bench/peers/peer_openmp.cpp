// SPDX-License-Identifier: Apache-2.0
//
// The programs of common/fork_kernels.hpp with the compiler's OpenMP tasks, on one thread: fib,
// fib_both, tak, qsort, queens, list.
#include "common/fork_kernels.hpp"
#include "peers/kernel_peer.hpp"

namespace {

struct by_openmp {
  struct group {
    void join() {
#pragma omp taskwait
    }
  };
  template <class T>
  struct child {
    T value;
    template <class F, class A>
    child(group&, F f, A a) {
      child* const self = this;
#pragma omp task firstprivate(self, f, a)
      self->value = f(a);
    }
    template <class F, class A, class B, class C>
    child(group&, F f, A a, B b, C c) {
      child* const self = this;
#pragma omp task firstprivate(self, f, a, b, c)
      self->value = f(a, b, c);
    }
    T get() { return value; }
  };
};
template <>
struct by_openmp::child<void> {
  template <class F, class A, class B>
  child(group&, F f, A a, B b) {
#pragma omp task firstprivate(f, a, b)
    f(a, b);
  }
  void get() {}
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run_kernel_peer("OpenMP", "fib", argc, argv,
                                [](std::string_view operation, const bench::batch_plan& plan) {
                                  std::optional<std::vector<double>> figures;
#pragma omp parallel num_threads(1)
#pragma omp single
                                  figures = bench::kernels::time_way<by_openmp>(operation, plan);
                                  return figures;
                                });
}
