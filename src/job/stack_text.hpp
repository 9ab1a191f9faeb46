// SPDX-License-Identifier: Apache-2.0
// The text about the stacks that a dying rank has written down.
#pragma once

#include <cstdint>
#include <string>

#include "job/segment.hpp"

namespace sojourn::detail {

/// The part of a death report about the stack: the frames, with inlined functions and lines, and
/// who called for what ran. `sender`: return address in the older frames that wait on another rank,
/// or 0.
std::string stack_text(const crash_record& crash, const std::string& symbol_file,
                       std::uint64_t sender = 0);

}  // namespace sojourn::detail
