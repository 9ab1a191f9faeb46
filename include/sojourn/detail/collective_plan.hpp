// SPDX-License-Identifier: Apache-2.0
// Which collective operations there are, and on which ways their contributions go.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// `end_of_program` is the runtime's own, after the body returned.
enum class collective : std::uint8_t {
  none,
  barrier,
  reduce,
  broadcast,
  gather,
  all_gather,
  all_to_all,
  inclusive_scan,
  exclusive_scan,
  split,
  end_of_program
};

/// How contributions go. In a tree, whose subtrees are ranges of members; or from each member to
/// each.
enum class collective_shape : std::uint8_t { meet, up_and_down, up_to_root, down, exchange };

struct collective_plan {
  collective what;
  collective_shape shape;
  int root = 0;
};

}  // namespace sojourn::detail
