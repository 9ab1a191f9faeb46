// SPDX-License-Identifier: Apache-2.0
// What only the command knows: about itself, and about the programs installed beside it.
#pragma once

#include <string>
#include <vector>

#include "sojourn/doctor.hpp"

namespace sojourn::tools {

/// What this command was built as and with.
finding check_build();

/// Programs that some commands use and no job needs.
std::vector<finding> check_optional_parts();

/// Starts a job of two ranks as a user would: `sojourn run -n 2` of this very program, each rank
/// with the word `as_rank` after "doctor".
finding check_job();

inline constexpr const char* as_rank = "--as-rank";

/// What each rank of that job does; its exit status.
int be_rank();

/// This program's file. Throws sojourn::error when the system does not say.
std::string own_file();

}  // namespace sojourn::tools
