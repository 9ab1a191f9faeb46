// SPDX-License-Identifier: Apache-2.0
// Shared memory in checkpoints.
#include <algorithm>
#include <cstdint>

#include "memory/address_map.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/collectives.hpp"

namespace sojourn::detail {

namespace pages {

namespace {

bool is_zero(const std::byte* page) {
  return std::all_of(page, page + page_bytes, [](std::byte b) { return b == std::byte{0}; });
}

/// Ends the list of pages.
constexpr std::uint64_t no_page = ~std::uint64_t{0};
/// Ends the list of objects: no address.
constexpr object_number no_object = 0;

}  // namespace

const char* rank_memory::unsaved() const {
  if (pages_.any_lock_in_use())
    return "a sojourn::shared::mutex is held or waited for, and these are not saved: unlock it "
           "first";
  if (pages_.any_event_waits())
    return "a fiber waits for a sojourn::shared::flag, a condition variable or a counted barrier, "
           "and that is not saved: let it end first";
  if (!members_.empty() || !main_takes_part_)
    return "other fibers than the main fibers of all ranks take part in the "
           "sojourn::shared::barrier(), and that is not saved: let them end first";
  if (!at_barrier_.empty())
    return "a fiber waits at the sojourn::shared::barrier(), and that is not saved: let it end "
           "first";
  if (pages_.any_pinned())
    return "shared memory is pinned (sojourn::shared::pinned), and that is not saved: end the pin "
           "first";
  return nullptr;
}

/// Calls visit(page) for all pages that this rank has dealt out and somebody has touched.
template <class Visit>
void rank_memory::each_page_to_save(Visit visit) {
  const std::uint64_t begin = addresses.shared / page_bytes;
  for (const allocator& blocks : blocks_.parts())
    for (const auto& [first, end] : blocks.pages_in_use())
      for (std::uint64_t at = first; at < end; ++at) {
        const auto page = static_cast<page_number>(at - begin);
        if (!pages_.is_untouched(page)) visit(page);
      }
}

void rank_memory::gather() {
  barrier();
  each_page_to_save(
      [](page_number page) { (void)*reinterpret_cast<volatile const char*>(program_page(page)); });
}

void rank_memory::save(file_writer& to) {
  for (const allocator& blocks : blocks_.parts()) blocks.save(to);
  each_page_to_save([&](page_number page) {
    const std::byte* from = bytes(page);
    if (is_zero(from)) return;
    to.put(std::uint64_t{page});
    to.bytes(from, page_bytes);
  });
  to.put(no_page);
  pages_.each_event_value([&](object_number object, std::uint64_t value) {
    to.put(object);
    to.put(value);
  });
  to.put(no_object);
}

void rank_memory::load(file_reader& from) {
  for (allocator& blocks : blocks_.parts()) blocks.load(from);
  for (auto page = from.get<std::uint64_t>(); page != no_page; page = from.get<std::uint64_t>()) {
    from.bytes(bytes(static_cast<page_number>(page)), page_bytes);
    pages_.restored(static_cast<page_number>(page));
  }
  for (auto object = from.get<object_number>(); object != no_object;
       object = from.get<object_number>())
    pages_.restored_event(object, from.get<std::uint64_t>());
}

}  // namespace pages

const char* unsaved_shared_memory() {
  return pages::shared_memory_has_begun() ? pages::memory().unsaved() : nullptr;
}

void gather_shared_memory() {
  const bool is_used =
      reduce(pages::shared_memory_has_begun(), [](bool a, bool b) { return a || b; });
  if (is_used) pages::memory().gather();
}

void save_shared_memory(file_writer& to) {
  const bool is_used = pages::shared_memory_has_begun();
  to.put(is_used);
  if (is_used) pages::memory().save(to);
}

void load_shared_memory(file_reader& from) {
  if (from.get<bool>()) pages::memory().load(from);
}

}  // namespace sojourn::detail
