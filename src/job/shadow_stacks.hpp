// SPDX-License-Identifier: Apache-2.0
// Shadow stacks: a second stack that the processor compares return addresses with, which frames
// that move cannot have.
#pragma once

namespace sojourn::detail {

enum class shadow_stacks { not_supported, off, on };

/// Those of this process. Programs that it starts may differ, by the marks in their files.
shadow_stacks shadow_stacks_here();

/// Throws sojourn::error when this process has them.
void refuse_shadow_stacks();

inline constexpr const char* shadow_stacks_remedy =
    "run with GLIBC_TUNABLES=glibc.cpu.hwcaps=-SHSTK";

}  // namespace sojourn::detail
