// SPDX-License-Identifier: Apache-2.0
#include "object/version_memory.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "fiber/piece.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/spare_stacks.hpp"
#include "memory/runtime_resource.hpp"
#include "memory/stack_slots.hpp"

namespace sojourn::detail {

namespace {

std::size_t offset_of_object(const replica_type& type) {
  return std::max(std::size_t{32}, type.alignment);
}
std::size_t whole_bytes(const replica_type& type) { return offset_of_object(type) + type.bytes; }
std::size_t whole_alignment(const replica_type& type) {
  return std::max(alignof(version_block), type.alignment);
}

bool lies_before(const version_block* a, const version_block* b) {
  return a->address() < b->address();
}

/// Looks for addresses of blocks in frames.
class search {
 public:
  /// `blocks`: in the order of their addresses, at least one.
  explicit search(const std::vector<version_block*>& blocks)
      : blocks_(blocks),
        first_(blocks.front()->address()),
        reach_(blocks.back()->address() + blocks.back()->type->bytes - first_),
        used_(blocks.size()) {}

  /// Frames begin and end at multiples of 8. The address sanitizer would object to what lies
  /// between their variables.
  __attribute__((no_sanitize("address"))) void look(const std::byte* from, std::size_t size) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(from);
    for (std::size_t i = 0; i < size / sizeof(std::uint64_t); ++i) {
      if (words[i] - first_ <= reach_) note(words[i]);
    }
  }
  void look_at(const piece* p) {
    // Other fibers do not read.
    if (p->methods == 0 && !p->marks_hold_methods) return;
    if (p->image != nullptr && p->in_place_from > p->sp) look(p->image, p->in_place_from - p->sp);
    if (p->in_place_from < p->hi)
      look(reinterpret_cast<const std::byte*>(p->in_place_from), p->hi - p->in_place_from);
  }
  bool is_used(std::size_t i) const { return used_[i]; }
  bool any_is_used() const { return any_; }

 private:
  /// One past an object's end counts, too.
  void note(std::uint64_t word) {
    auto after =
        std::upper_bound(blocks_.begin(), blocks_.end(), word,
                         [](std::uint64_t w, const version_block* b) { return w < b->address(); });
    const version_block& block = **--after;
    if (word - block.address() > block.type->bytes) return;
    used_[static_cast<std::size_t>(after - blocks_.begin())] = true;
    any_ = true;
  }

  const std::vector<version_block*>& blocks_;
  std::uint64_t first_;
  std::uint64_t reach_;
  std::vector<bool> used_;
  bool any_ = false;
};

/// The frames of the running fiber from the caller's on. Registers that the caller's callers have
/// values in are saved in this function's frame. False when they are on a stack that the program
/// has made, of which nobody knows where it ends.
[[gnu::noinline]] bool look_at_running_frames(search& s) {
  const piece* const p = running_piece();
  if (p == nullptr) return true;
  __builtin_unwind_init();
  const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
  // The saved registers lie below the frame's address.
  constexpr std::size_t saved = 256;
  const auto from = reinterpret_cast<std::uint64_t>(here - saved);
  if (from < slots.low(p->slot) || from >= p->hi) return false;
  s.look(here - saved, p->hi - from);
  return true;
}

}  // namespace

version_block* version_memory::take(const replica_type& type) {
  void* const room = runtime_resource()->allocate(whole_bytes(type), whole_alignment(type));
  return ::new (room)
      version_block{&type, 0, static_cast<std::byte*>(room) + offset_of_object(type)};
}

void version_memory::give_back(version_block* block) {
  const replica_type& type = *block->type;
  runtime_resource()->deallocate(block, whole_bytes(type), whole_alignment(type));
}

void version_memory::discard(version_block* block) {
  block->type->destroy(block->object);
  give_back(block);
}

void version_memory::retire(version_block* block, bool frames_are_known) {
  retired_.push_back(block);
  retired_bytes_ += block->type->bytes;
  if (!frames_are_known) return;
  if (retired_.size() >= look_at_blocks_ || retired_bytes_ >= look_at_bytes_) free_unused();
}

void version_memory::free_unused() {
  std::sort(retired_.begin(), retired_.end(), lies_before);
  search s(retired_);
  if (!look_at_running_frames(s)) return;
  each_piece(
      [](piece* p, void* context) {
        if (p != running_piece() && p != spare_piece()) static_cast<search*>(context)->look_at(p);
      },
      &s);
  std::vector<version_block*> unused;
  std::vector<version_block*> still_used;
  for (std::size_t i = 0; i < retired_.size(); ++i)
    (s.is_used(i) ? still_used : unused).push_back(retired_[i]);
  retired_.swap(still_used);
  retired_bytes_ = 0;
  for (const version_block* b : retired_) retired_bytes_ += b->type->bytes;
  // So the time that looking takes is in proportion to what comes.
  look_at_blocks_ = std::max(least_blocks, 2 * retired_.size());
  look_at_bytes_ = std::max(least_bytes, 2 * retired_bytes_);
  // Last, because destructors are code of the program.
  for (version_block* b : unused) discard(b);
}

bool version_memory::is_used_by(const piece* p, const std::vector<version_block*>& sorted) {
  if (sorted.empty()) return false;
  search s(sorted);
  s.look_at(p);
  return s.any_is_used();
}

}  // namespace sojourn::detail
