// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// What load balance knows of a thread; travels with it.
struct balance_record {
  std::int16_t affinity = no_rank;     ///< The only rank that the thread may be handed to.
  std::int16_t handed_from = no_rank;  ///< The rank that handed it over last.
  std::uint16_t handovers = 0;
  bool on_its_way = false;           ///< Load balance moves it, not the program.
  std::uint64_t stays_until_ns = 0;  ///< It does not go back before this time (now_ns()).

  bool matters() const { return affinity != no_rank || handovers != 0; }
};

}  // namespace sojourn::detail
