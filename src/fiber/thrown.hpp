// SPDX-License-Identifier: Apache-2.0
// Where exceptions were thrown, as far as is known (detail/thrown.hpp), and the end of a job by an
// exception that nobody takes.
#pragma once

#include <exception>
#include <string>
#include <typeinfo>

#include "frames/thrown_frames.hpp"

namespace sojourn::detail {

/// Notes the frames that the exception `object` is about to leave. None of them is gone yet.
void note_passing(const std::type_info& thrown, void* object);

/// Where the exception was thrown, or null: not known. Valid until the next exception.
const thrown_frames* thrown_from(const std::exception_ptr& exception);
/// Notes where an exception was thrown that came from another rank.
void note_thrown_from(const std::exception_ptr& exception, const thrown_frames& frames);

/// "std::out_of_range: no such page", or the type alone if it is not a std::exception.
std::string text_of(const std::exception_ptr& exception);

/// Ends the job because of an exception that nobody else would hear of. `left`: what the exception
/// has left, a thread for example.
[[noreturn]] void nobody_takes(const std::exception_ptr& exception, const char* left);

/// For std::terminate: if the exception that is not caught was thrown again, where it was thrown
/// first. Null when it was thrown only once, or nothing is known.
const thrown_frames* rethrown_from(const std::exception_ptr& exception);

}  // namespace sojourn::detail
