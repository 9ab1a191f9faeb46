// SPDX-License-Identifier: Apache-2.0
// The line that the head writes to the standard input of each agent that it starts, as the only way
// by which the job's secret reaches another host. What follows the line is the job's input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hosts/addresses.hpp"
#include "hosts/proof.hpp"

namespace sojourn::detail {

struct starting_line {
  job_secret secret;
  std::string secret_word = {};  ///< To be told in its place (key.hpp).
  std::uint32_t host = 0;        ///< Its number in the job.
  std::vector<address> head;     ///< Where the head can be reached, perhaps.
};

std::string to_text(const starting_line& line);
/// Reads no byte beyond the line. Throws sojourn::error.
starting_line read_starting_line(int descriptor);

}  // namespace sojourn::detail
