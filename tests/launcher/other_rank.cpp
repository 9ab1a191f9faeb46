// SPDX-License-Identifier: Apache-2.0
// Another program than real_rank, which takes part in its job; its first rank may do as the
// argument says.
#include <cstdint>
#include <cstring>

#include "sojourn/sojourn.hpp"

namespace others {

[[gnu::noinline]] void by_segmentation_fault() {
  volatile std::uintptr_t address = 8;
  *reinterpret_cast<volatile int*>(address) = 1;
}

/// As long as everybody waits for this.
[[gnu::noinline]] void waits_for_ever() {
  sojourn::latch never(1);
  never.wait();
}

}  // namespace others

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "well";
  if (std::strcmp(how, "twice") == 0) {
    using sojourn::method;
    sojourn::exports<method<"other.same", void(int)>>([](int) {});
    sojourn::exports<method<"other.same", void(long)>>([](long) {});
  }
  return sojourn::run(argc, argv, [&] {
    sojourn::barrier();
    if (std::strcmp(how, "segv") == 0) others::by_segmentation_fault();
    if (std::strcmp(how, "hang") == 0) others::waits_for_ever();
    sojourn::barrier();
    int sum = sojourn::reduce(1, [](int a, int b) { return a + b; });
    return sum == sojourn::rank_count() ? 0 : 1;
  });
}
