// SPDX-License-Identifier: Apache-2.0
#include "job/sanitizers.hpp"

#include "base/check.hpp"
#include "sojourn/detail/asan.hpp"

// Each is there when the program is built for its sanitizer.
extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __hwasan_init();
[[gnu::weak]] void __msan_init();
[[gnu::weak]] void __tsan_init();
}

namespace sojourn::detail {

void refuse_sanitizer_of_program_alone() {
#if !SOJOURN_ASAN
  if (__asan_init != nullptr) {
    throw error(
        "this program is built with -fsanitize=address, and the Sojourn that it is linked with is "
        "not, so the sanitizer would take stacks that move for mistakes: build Sojourn with "
        "-DSOJOURN_SANITIZE=ON, or the program without");
  }
#endif
  const char* other = __hwasan_init != nullptr ? "hwaddress"
                      : __msan_init != nullptr ? "memory"
                      : __tsan_init != nullptr ? "thread"
                                               : nullptr;
  if (other == nullptr) return;
  throw error(
      format("this program is built with -fsanitize=%s, which does not know of stacks that move: "
             "build it without",
             other));
}

}  // namespace sojourn::detail
