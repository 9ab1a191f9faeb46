// SPDX-License-Identifier: Apache-2.0
// What is known of where exceptions were thrown (detail/thrown.hpp), and the end of a job by one
// that nobody takes.
#pragma once

#include <exception>
#include <string>

#include "base/thrown_frames.hpp"

namespace sojourn::detail {

/// Null: not known. Valid until the next exception.
const thrown_frames* thrown_from(const std::exception_ptr& exception);
/// It came from another rank, which knew.
void note_thrown_from(const std::exception_ptr& exception, const thrown_frames& frames);

/// "std::out_of_range: no such page", or the type alone of what is no std::exception.
std::string text_of(const std::exception_ptr& exception);

/// Ends the job: nobody else would hear of it. `left`: what the exception left.
[[noreturn]] void nobody_takes(const std::exception_ptr& exception, const char* left);

/// In std::terminate: what is known of an exception that was thrown before, somewhere else, than
/// where it is not caught. Null: nothing.
const thrown_frames* rethrown_from(const std::exception_ptr& exception);

}  // namespace sojourn::detail
