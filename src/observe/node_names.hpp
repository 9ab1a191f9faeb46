// SPDX-License-Identifier: Apache-2.0
// How a hang report names the nodes of the wait-for graph: by the program's functions on their
// stacks, and by the names of threads.
#pragma once

#include <string>
#include <vector>

#include "frames/code_place.hpp"
#include "observe/hang_view.hpp"
#include "observe/wait_graph.hpp"

namespace sojourn::detail {

struct node_name {
  std::vector<code_place> places;  ///< Youngest first.
  std::string thread;              ///< Or "".
  /// Where the shared::mutex was locked that it waits for, youngest first.
  std::vector<code_place> locked_at = {};
};

/// One for each node. Reads the programs' symbols.
std::vector<node_name> names_of(const hang_view& view, const wait_graph& waits);

/// "barrier": the collective operation that the fiber waits in.
std::string operation_of(const fiber_record& fiber);

}  // namespace sojourn::detail
