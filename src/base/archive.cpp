// SPDX-License-Identifier: Apache-2.0
#include "sojourn/detail/archive.hpp"

#include "base/check.hpp"

namespace sojourn::detail {

void malformed(const char* what) {
  throw malformed_message(format("a marshalled message is malformed: %s", what));
}

void malformed_count(std::uint64_t count, std::uint64_t bytes_left) {
  throw malformed_message(
      format("a marshalled message is malformed: it announces %llu elements, but only %llu bytes "
             "are left",
             static_cast<unsigned long long>(count), static_cast<unsigned long long>(bytes_left)));
}

void nested_too_deep() {
  throw error(
      format("values nested more than %d deep cannot be marshalled: send them in parts, or write a "
             "`save` and a `load` that visit them in a loop",
             nesting_max));
}

void cannot_be_saved(const char* what) {
  throw error(format("a value cannot be marshalled: %s", what));
}

}  // namespace sojourn::detail
