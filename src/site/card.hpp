// SPDX-License-Identifier: Apache-2.0
// What each process that a launcher of the site has started tells the others of itself, and what
// follows from that: which hosts there are, and which process stands for all processes of a host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hosts/addresses.hpp"

namespace sojourn::detail {

struct card {
  std::string host;  ///< Equal for two processes if each can start and watch what the other can.
  std::string host_name;  ///< For reports.
  long process = 0;       ///< Its process number on that host.
  std::string cores;      ///< The cores that it may use, as the kernel lists them: "0-3,8".
  std::string command;    ///< Equal for processes with the same program and arguments.
};

/// A word for started_together::exchange().
std::string to_text(const card& card);
/// Throws sojourn::error when the text is no card.
card card_from_text(std::string_view text);

/// What the first process tells of the job's head.
struct invitation {
  std::string secret;         ///< In the form that learn_secret() takes.
  std::vector<address> head;  ///< Addresses at which others can perhaps reach it.
};

/// Contains as many of the addresses as fit.
std::string to_text(const invitation& invitation);
invitation invitation_from_text(std::string_view text);

struct host_of_cards {
  std::string name;
  std::vector<int> processes;  ///< By number, ascending: the first one stands for all.
};

/// In the order of the hosts' first processes, so the first host is that of process 0.
std::vector<host_of_cards> hosts_of(const std::vector<card>& cards);

/// "0-3,8" as a set of cores, ascending. Leaves out numbers above 65535.
std::vector<int> cores_from_text(std::string_view text);
std::string cores_to_text(const std::vector<int>& cores);

}  // namespace sojourn::detail
