// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "base/check.hpp"
#include "sojourn/detail/object_type.hpp"

namespace sojourn::detail {

namespace {

std::vector<const object_type*>& all_types() {
  static std::vector<const object_type*> all{nullptr};
  return all;
}

}  // namespace

std::uint16_t register_object_type(const object_type& type) {
  auto& all = all_types();
  if (all.size() > 0xffff) die("a program has at most 65,535 types of objects that are marshalled");
  all.push_back(&type);
  return static_cast<std::uint16_t>(all.size() - 1);
}

const object_type* object_type_at(std::uint16_t number) {
  const auto& all = all_types();
  return number < all.size() ? all[number] : nullptr;
}

}  // namespace sojourn::detail
