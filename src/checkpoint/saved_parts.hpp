// SPDX-License-Identifier: Apache-2.0
// A rank's file, part by part. Each part stands behind its name, so that if a part is read
// differently than it was written, this is noticed where the part ends.
#pragma once

#include <span>
#include <string>

#include "base/saved_file.hpp"

namespace sojourn::detail {

/// What one floor saves of a rank.
struct saved_part {
  const char* name;  ///< At most 31 characters.
  void (*save)(file_writer& to);
  /// Throws sojourn::error: a part of a sentence, as file_reader does.
  void (*load)(file_reader& from);
};

void save_parts(file_writer& to, std::span<const saved_part> parts);
/// Throws sojourn::error, also when `file` has another part than the one that comes next.
void load_parts(file_reader& from, const std::string& file, std::span<const saved_part> parts);

}  // namespace sojourn::detail
