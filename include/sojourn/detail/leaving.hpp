// SPDX-License-Identifier: Apache-2.0
// Checked mode looks at values that leave their rank as bytes, and whose types do not tell whether
// they hold addresses.
#pragma once

#include <cstddef>

#include "sojourn/detail/addresses.hpp"
#include "sojourn/detail/checked.hpp"

namespace sojourn::detail {

/// Ends the job when one of these values, which are about to leave for rank `to` (or
/// several_ranks), has an address of this rank's memory in it.
template <class T>
[[gnu::always_inline]] inline void check_leaving(leaves_as what, int to, const T* values,
                                                 std::size_t count = 1) {
  if constexpr (may_hide_address<T>) {
    if (checked()) [[unlikely]]
      check_hidden(what, to, values, count, kind_of_object<T>());
  }
}

}  // namespace sojourn::detail
