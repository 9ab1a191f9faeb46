// SPDX-License-Identifier: Apache-2.0
// What each process that a launcher of the site has started tells the others of itself, and what
// follows from all of that: which hosts there are, and who stands for the processes of each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hosts/addresses.hpp"

namespace sojourn::detail {

struct card {
  std::string host;       ///< Equal where one process can start and watch what another would be.
  std::string host_name;  ///< For reports.
  long process = 0;       ///< Its number there.
  std::string cores;      ///< Those that it may use, as the kernel lists them: "0-3,8".
  std::string command;    ///< Equal where the program and its arguments are.
};

/// A word for started_together::exchange().
std::string to_text(const card& card);
/// Throws sojourn::error where the text is no card.
card card_from_text(std::string_view text);

/// What the first process tells of the job's head.
struct invitation {
  std::string secret;         ///< As learn_secret() takes it.
  std::vector<address> head;  ///< Where it can be reached, perhaps.
};

/// With as many of the addresses as fit.
std::string to_text(const invitation& invitation);
invitation invitation_from_text(std::string_view text);

struct host_of_cards {
  std::string name;
  std::vector<int> processes;  ///< By number, ascending: the first stands for all.
};

/// In the order of their first processes, so the first host is that of process 0.
std::vector<host_of_cards> hosts_of(const std::vector<card>& cards);

/// "0-3,8" as a set of cores, ascending; others than 0 to 65535 are left out.
std::vector<int> cores_from_text(std::string_view text);
std::string cores_to_text(const std::vector<int>& cores);

}  // namespace sojourn::detail
