// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/saved_parts.hpp"

#include <array>
#include <string_view>

#include "base/check.hpp"

namespace sojourn::detail {

namespace {

/// A name, filled up with NULs. Its length is fixed, so that no length in a file has to be
/// believed.
using written_name = std::array<char, 32>;

written_name name_of(const saved_part& part) {
  written_name name{};
  const std::string_view text = part.name;
  SOJOURN_CHECK(text.size() < name.size(), "the name of the part `%s` is too long", part.name);
  text.copy(name.data(), text.size());
  return name;
}

}  // namespace

void save_parts(file_writer& to, std::span<const saved_part> parts) {
  for (const saved_part& part : parts) {
    to.put(name_of(part));
    part.save(to);
  }
}

void load_parts(file_reader& from, const std::string& file, std::span<const saved_part> parts) {
  std::string before = "its head";
  for (const saved_part& part : parts) {
    if (from.get<written_name>() != name_of(part)) {
      throw error(format("the part `%s` of %s does not begin where %s ends", part.name,
                         file.c_str(), before.c_str()));
    }
    part.load(from);
    before = format("`%s`", part.name);
  }
}

}  // namespace sojourn::detail
