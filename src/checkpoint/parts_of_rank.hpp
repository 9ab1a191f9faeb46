// SPDX-License-Identifier: Apache-2.0
// The parts of a rank's file: what each floor saves, in an order that stands here alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/saved_parts.hpp"
#include "sojourn/jobs/checkpoint.hpp"

namespace sojourn::detail {

struct piece;

/// What is saved besides what the floors know themselves.
struct rank_to_save {
  root_bytes root;
  std::vector<piece*> fibers;
};
struct restored_root {
  std::string type;
  std::vector<std::byte> bytes;
};

/// `shared_memory`: the part of a floor beside this one.
void save_parts_of_rank(file_writer& to, const rank_to_save& rank, const saved_part& shared_memory);
/// Throws sojourn::error (load_parts).
restored_root load_parts_of_rank(file_reader& from, const std::string& file,
                                 const saved_part& shared_memory);

}  // namespace sojourn::detail
