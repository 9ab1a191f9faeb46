// SPDX-License-Identifier: Apache-2.0
// The second of the paper's ways to move a thread, which the benchmark compares with the first.
// Programs need one, and have migrate().
#pragma once

#include <sojourn/detail/migrate_by_switch.hpp>
#include <sojourn/sojourn.hpp>

namespace bench {

inline void move_by_switch(sojourn::rank_t to) { sojourn::detail::migrate_self_by_switch(to); }

}  // namespace bench
