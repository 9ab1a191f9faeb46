// SPDX-License-Identifier: Apache-2.0
// What only the command knows: about itself, and about the programs installed beside it.
#pragma once

#include <string>
#include <vector>

#include "sojourn/jobs/doctor.hpp"

namespace sojourn::tools {

/// What this command was built as and with.
finding check_build();

/// Programs that some commands use and no job needs.
std::vector<finding> check_optional_parts();

/// Starts a job of two ranks as a user would: `sojourn run -n 2` of this very program, each rank
/// with the word `as_rank` after "doctor".
finding check_job();

inline constexpr const char* as_rank = "--as-rank";

/// The hosts of which somebody wants to know whether they can have a job together.
struct hosts_to_check {
  std::string list;                  ///< As --hosts takes it; or
  std::string file;                  ///< as --hostfile does.
  std::vector<std::string> further;  ///< Options of `sojourn run` that say how to reach them.
};
/// Runs a job with one rank on each. Throws sojourn::error where they are not named as they should.
std::vector<finding> check_hosts(const hosts_to_check& asked);
inline constexpr const char* as_rank_of_host = "--as-rank-of-host";
int be_rank_of_host();

/// What each rank of that job does; its exit status.
int be_rank();

/// This program's file. Throws sojourn::error when the system does not say.
std::string own_file();

}  // namespace sojourn::tools
