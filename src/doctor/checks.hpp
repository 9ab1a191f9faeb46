// SPDX-License-Identifier: Apache-2.0
// The checks behind diagnose(), each a function that gives one finding. They run in this order.
#pragma once

#include <string>

#include "doctor/trial.hpp"
#include "sojourn/jobs/doctor.hpp"

namespace sojourn::detail {

/// The finding of a check for which no process could be started.
finding not_tried(const std::string& check, const trial& t);

// memory.cpp: addresses and memory, as a rank takes them at its start.
finding check_address_range();
finding check_worker_thread();
finding check_rank_memory();
finding check_shared_memory();
finding check_overcommit();
finding check_mappings();
finding check_memory();

// limits.cpp: what this process and its children are limited to.
finding check_address_space_limit();
finding check_data_limit();
finding check_file_size_limit();
finding check_stack_limit();
finding check_locked_memory_limit();
finding check_open_files_limit();
finding check_processes_limit();
finding check_cores();

// kernel.cpp: what the kernel can do, and what it, or a container, refuses.
finding check_kernel();
finding check_c_library();
finding check_shadow_stacks();
finding check_futex();
finding check_membarrier();
finding check_put_and_get();
finding check_death_signal();
finding check_orphans();
finding check_signal_descriptor();
finding check_binding();
finding check_container();
finding check_debugger();

// hosts.cpp: jobs on several hosts.
finding check_network();
finding check_launchers();

}  // namespace sojourn::detail
