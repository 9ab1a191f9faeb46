// SPDX-License-Identifier: Apache-2.0
#include "job/shadow_stacks.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/doctor_hint.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

shadow_stacks shadow_stacks_here() {
#if defined(__x86_64__)
  constexpr int status_operation = 0x5005;  // ARCH_SHSTK_STATUS
  constexpr unsigned long enabled = 1;      // ARCH_SHSTK_SHSTK
  unsigned long features = 0;
  if (syscall(SYS_arch_prctl, status_operation, &features) == 0) {
    return (features & enabled) != 0 ? shadow_stacks::on : shadow_stacks::off;
  }
#endif
  return shadow_stacks::not_supported;
}

void refuse_shadow_stacks() {
  if (shadow_stacks_here() == shadow_stacks::on) {
    throw error(
        format("shadow stacks are enabled for this process, and stacks that move cannot have "
               "them: %s%s",
               shadow_stacks_remedy, doctor_hint));
  }
}

}  // namespace sojourn::detail
