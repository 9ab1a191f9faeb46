// SPDX-License-Identifier: Apache-2.0
// A thread whose function is a lambda, so that the compiler inlines it into a function of the
// runtime, waits for a page while it holds a mutex; the good one has the page before it locks.
#include <cstring>
#include <mutex>

#include <sojourn/sojourn.hpp>

namespace {

std::mutex guard;

int add_up(bool loads_before) {
  long* values = nullptr;
  if (sojourn::rank_me() == 0) {
    values = sojourn::shared::alloc<long>(64 * 512);
    for (int i = 0; i < 64; ++i) values[i * 512] = i;
  }
  sojourn::shared::pointer<long> all(values);
  all = sojourn::broadcast(all, 0);
  sojourn::shared::barrier();
  volatile long sum = 0;
  sojourn::shared::run_threads(2, [&sum, loads_before, values = all.get()](int number) {
    if (sojourn::rank_me() != sojourn::rank_count() - 1) return;
    for (int i = 0; i < 32; ++i) {
      const volatile long& value = values[(i * 2 + number % 2) * 512];
      const long loaded = loads_before ? value : 0;
      const std::lock_guard lock(guard);
      sum = sum + (loads_before ? loaded : value);
    }
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return sojourn::run(argc, argv,
                      [&] { return add_up(argc > 1 && std::strcmp(argv[1], "good") == 0); });
}
