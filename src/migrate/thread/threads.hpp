// SPDX-License-Identifier: Apache-2.0
// Threads: fibers whose bases (their oldest frames) may migrate. The job finds a thread by its
// name, the ticket of its result. This header has what the rest of the runtime calls.
// thread_table.hpp has the threads of this rank, thread_location.hpp how others are found,
// thread_home.hpp and thread_asks.hpp the messages, thread_trailer.hpp what travels with a thread.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"

namespace sojourn::detail {

class file_writer;
class file_reader;

void attach_threads();

/// Write what this rank knows of threads that are not here to a checkpoint, and read it back in a
/// job that is restored.
void save_threads(file_writer& to);
void load_threads(file_reader& from);

}  // namespace sojourn::detail
