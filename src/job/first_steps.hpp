// SPDX-License-Identifier: Apache-2.0
// How a rank comes to life: all parts of the runtime are attached, each in its turn, and the ranks
// of the job meet.
#pragma once

#include "job/segment.hpp"

namespace sojourn::detail {

struct piece;

/// What the first steps are told of the rank's life.
struct life_of_rank {
  job_segment* segment = nullptr;
  bool is_alone = false;  ///< There is no launcher.
  /// The main fiber, while it waits for the others of this rank; else null.
  const piece* (*waiting_main)() = nullptr;
  void (*deadlocked)() = nullptr;
  void (*ring)() = nullptr;  ///< Rings for the launcher.
};

/// On the worker, before anything runs. Throws sojourn::error.
void take_first_steps(const life_of_rank& life);

}  // namespace sojourn::detail
