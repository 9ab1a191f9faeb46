// SPDX-License-Identifier: Apache-2.0
// The processes of a C program: main() is the first, in the main fiber of rank 0, and creates
// others, which are threads that stay on their rank. All of them take part in shared::barrier().
// Rank 0 knows how many processes each rank has, and who waits for their end. They begin and end
// one at a time.
#pragma once

#include <cstdint>

namespace sojourn::detail {

using process_function = void (*)(void*);

void create_process(process_function function, void* argument);
/// Calls it. The doorbell of shared memory knows this function by its name: what runs above is the
/// program's.
void call_process(process_function function, void* argument);
/// See sojourn_wait_for_end.
void wait_for_processes(long count);
/// The number of the running process.
int process_number();
/// Whether that many run, main() included, and none begins or ends just now. False unless main()
/// asks: others cannot know.
bool are_all_processes(std::uint32_t count);
/// Leaves the running process: its frames are gone.
[[noreturn]] void end_process(int status);
/// The running process of the system is a child that a rank has made by fork().
bool is_forked_child();

using main_function = int (*)(int, char**, char**);
/// The body of a rank: runs `main` as process 0 on rank 0, and on the others the processes that are
/// created there. Returns the exit status of this rank.
int run_processes(int argc, char** argv, main_function main);

}  // namespace sojourn::detail
