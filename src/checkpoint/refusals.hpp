// SPDX-License-Identifier: Apache-2.0
// What refuses a checkpoint: fibers and other things of a rank that would be wrong in another
// process.
#pragma once

#include <string>
#include <vector>

#include "sojourn/jobs/checkpoint.hpp"

namespace sojourn::detail {

struct piece;

[[noreturn]] void refuse_checkpoint(checkpoint_refusal why, const std::string& text);

/// Each rank finds this out by itself, so that no rank waits for the others.
void refuse_several_programs();
/// To be called before anything suspends: if a fork were open, a wait would let older frames of
/// main go on.
void refuse_unless_main();

/// The fibers of this rank but `main`, which writes the checkpoint. Refuses it when one of them
/// cannot be saved, or when this rank has something else that no file holds.
std::vector<piece*> fibers_to_save(const piece* main);

}  // namespace sojourn::detail
