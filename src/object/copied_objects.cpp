// SPDX-License-Identifier: Apache-2.0
#include "object/copied_objects.hpp"

#include <algorithm>
#include <iterator>

#include "fiber/piece.hpp"
#include "fiber/scheduler.hpp"

namespace sojourn::detail {

copied_object* copied_objects::find(std::uint64_t address) {
  const auto known = all_.find(address);
  return known == all_.end() ? nullptr : &known->second;
}

std::vector<copied_object*> copied_objects::overlapping(std::uint64_t address, std::size_t bytes) {
  std::vector<copied_object*> found;
  auto each = all_.upper_bound(address);
  if (each != all_.begin()) {
    const auto before = std::prev(each);
    if (address - before->first < before->second.bytes) found.push_back(&before->second);
  }
  for (; each != all_.end() && each->first - address < bytes; ++each)
    found.push_back(&each->second);
  return found;
}

copied_object& copied_objects::add(std::uint64_t address, std::size_t bytes) {
  return all_.emplace(address, copied_object{address, bytes}).first->second;
}

void copied_objects::remove(std::uint64_t address) { all_.erase(address); }

void copied_objects::begin_change_of(std::uint64_t address, std::size_t bytes) {
  changing_.push_back({address, bytes});
}

void copied_objects::end_change_of(std::uint64_t address, std::size_t bytes) {
  // Mostly the one that began last.
  const auto known = std::find(changing_.rbegin(), changing_.rend(), range{address, bytes});
  if (known != changing_.rend()) changing_.erase(std::next(known).base());
}

bool copied_objects::is_changed_with(std::uint64_t address, std::size_t bytes) const {
  return std::any_of(changing_.begin(), changing_.end(), [&](const range& r) {
    return address < r.address + r.bytes && r.address < address + bytes;
  });
}

namespace {

constexpr std::size_t most_bytes = 1u << 20;  // of frames: some 100 us

struct search {
  std::uint64_t address;
  std::size_t bytes;
  std::size_t looked_at;
  bool found;

  /// Frames begin and end at multiples of 8. The address sanitizer would object to what lies
  /// between their variables.
  __attribute__((no_sanitize("address"))) void look(const std::byte* from, std::size_t size) {
    looked_at += size;
    if (looked_at > most_bytes) found = true;
    const auto* const words = reinterpret_cast<const std::uint64_t*>(from);
    for (std::size_t i = 0; i < size / sizeof(std::uint64_t) && !found; ++i)
      found = words[i] - address <= bytes;  // one past the end, too
  }
};

}  // namespace

bool may_be_in_use(std::uint64_t address, std::size_t bytes) {
  // An object of which this is a part mostly begins near by.
  constexpr std::uint64_t before = 1024;
  search s{address - before, bytes + before, 0, false};
  each_piece(
      [](piece* p, void* context) {
        auto& looks = *static_cast<search*>(context);
        if (looks.found || p == running_piece() || p == spare_piece()) return;
        // Other fibers have the address in a global_ptr, at most.
        if (p->methods == 0 && !p->marks_hold_methods) return;
        if (p->image != nullptr && p->in_place_from > p->sp)
          looks.look(p->image, p->in_place_from - p->sp);
        if (p->in_place_from < p->hi)
          looks.look(reinterpret_cast<const std::byte*>(p->in_place_from),
                     p->hi - p->in_place_from);
      },
      &s);
  return s.found;
}

}  // namespace sojourn::detail
