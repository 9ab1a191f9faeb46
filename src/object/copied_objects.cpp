// SPDX-License-Identifier: Apache-2.0
#include "object/copied_objects.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "fiber/piece.hpp"
#include "fiber/scheduler.hpp"

namespace sojourn::detail {

namespace {

constexpr unsigned shift_of_two_places = 63;
region_of_copies* no_regions[2] = {};
constexpr std::size_t first_places = 256;

unsigned shift_of(std::size_t places) {
  return 64 - static_cast<unsigned>(std::countr_zero(places));
}

bool shares_a_byte(const copied_object& o, std::uint64_t address, std::size_t bytes) {
  return address < o.address + o.bytes && o.address < address + bytes;
}

}  // namespace

region_places regions_with_copies{no_regions, shift_of_two_places};

copied_objects::copied_objects()
    : place_count_(first_places), places_(std::make_unique<region_of_copies*[]>(first_places)) {
  regions_with_copies = {places_.get(), shift_of(place_count_)};
}

copied_objects::~copied_objects() { regions_with_copies = {no_regions, shift_of_two_places}; }

/// Visits the objects that share a byte with the range, until a visit returns true.
template <class Visit>
bool copied_objects::any_overlapping(std::uint64_t address, std::size_t bytes, Visit visit) const {
  if (bytes == 0 || all_.size() == 0) return false;
  const std::uint64_t first = region_of(address), last = region_of(address + bytes - 1);
  for (std::uint64_t number = first; number <= last; ++number) {
    for (const region_of_copies* r = first_in_region(number); r != nullptr; r = r->next) {
      if (r->number != number || !shares_a_byte(*r->object, address, bytes)) continue;
      // An object in several regions counts in the first one that the range has.
      if (std::max(region_of(r->object->address), first) == number && visit(*r->object))
        return true;
    }
  }
  return false;
}

std::vector<copied_object*> copied_objects::overlapping(std::uint64_t address,
                                                        std::size_t bytes) const {
  std::vector<copied_object*> found;
  any_overlapping(address, bytes, [&](copied_object& o) {
    found.push_back(&o);
    return false;
  });
  return found;
}

bool copied_objects::overlaps(std::uint64_t address, std::size_t bytes) const {
  return any_overlapping(address, bytes, [](copied_object&) { return true; });
}

copied_object& copied_objects::add(std::uint64_t address, object_shape shape) {
  copied_object& added = all_.find_or_add(address).first;
  added.address = address;
  added.bytes = shape.bytes;
  added.type = shape.type;
  const std::uint64_t first = region_of(address);
  const std::size_t regions = region_of(address + shape.bytes - 1) - first + 1;
  if (regions > added.first_regions.size())
    added.more_regions = std::make_unique<region_of_copies[]>(regions);
  for (std::size_t i = 0; i < regions; ++i) {
    if (++region_count_ > place_count_ / 2) use_more_places();
    region_of_copies& entered = added.regions()[i];
    entered = {first + i, &added, nullptr};
    enter(&entered);
  }
  return added;
}

void copied_objects::enter(region_of_copies* entered) {
  region_of_copies*& first = first_in_region(entered->number);
  entered->next = first;
  first = entered;
}

void copied_objects::use_more_places() {
  const std::size_t old_count = place_count_;
  place_count_ *= 4;
  auto old = std::exchange(places_, std::make_unique<region_of_copies*[]>(place_count_));
  regions_with_copies = {places_.get(), shift_of(place_count_)};
  for (std::size_t i = 0; i < old_count; ++i) {
    for (region_of_copies* r = old[i]; r != nullptr;) enter(std::exchange(r, r->next));
  }
}

void copied_objects::remove(std::uint64_t address) {
  copied_object* const gone = all_.find(address);
  if (gone == nullptr) return;
  for (std::uint64_t number = region_of(address); number <= region_of(address + gone->bytes - 1);
       ++number) {
    region_of_copies** at = &first_in_region(number);
    while ((*at)->object != gone || (*at)->number != number) at = &(*at)->next;
    *at = (*at)->next;
    --region_count_;
  }
  all_.erase(address);
}

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
  if (methods_were_suspended == 0) return false;
  // An object of which this is a part mostly begins near by.
  constexpr std::uint64_t before = 1024;
  search s{address - before, bytes + before, 0, false};
  methods_were_suspended = 0;
  each_piece(
      [](piece* p, void* context) {
        auto& looks = *static_cast<search*>(context);
        if (p == running_piece() || p == spare_piece()) return;
        // Other fibers have the address in a global_ptr, at most.
        if (p->methods == 0 && !p->marks_hold_methods) return;
        methods_were_suspended = 1;
        if (looks.found) return;
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
