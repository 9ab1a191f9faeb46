// SPDX-License-Identifier: Apache-2.0
#include "sojourn/detail/archive.hpp"

#include "base/check.hpp"

namespace sojourn::detail {

void malformed(const char* what) {
  throw malformed_message(format("a marshalled message is malformed: %s", what));
}

void malformed_count(std::uint64_t count, std::uint64_t bytes_left) {
  throw malformed_message(
      format("a marshalled message is malformed: it has %llu bytes left and tells of %llu elements",
             static_cast<unsigned long long>(bytes_left), static_cast<unsigned long long>(count)));
}

void nested_too_deep() {
  throw error(
      format("values nested more than %d deep are not marshalled: send them in pieces, or write a "
             "`save` and `load` that go through them one by one",
             nesting_max));
}

void cannot_be_saved(const char* what) {
  throw error(format("a value cannot be marshalled: %s", what));
}

}  // namespace sojourn::detail
