// SPDX-License-Identifier: Apache-2.0
#include "fiber/piece.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "fiber/hooks.hpp"
#include "fiber/rules.hpp"
#include "fiber/stack_copy.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

fiber_hooks on_fiber;
std::size_t pieces_in_use = 0;
piece* free_pieces = nullptr;

namespace {

std::uint64_t last_stamp = 0;
// Images larger than this are not kept with a free descriptor.
constexpr std::size_t pooled_image_bytes = 8192;
constexpr std::size_t pieces_at_once = 64;
// The `hi` of a watch.
constexpr std::uint64_t everywhere = ~std::uint64_t{0};

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Moves the bytes of `p` below `until` from their place to the image.
void evict(piece* p, std::uint64_t until) {
  if (p->hi == everywhere) return;
  until = std::min(until, p->hi);
  if (p->in_place_from >= until) return;
  SOJOURN_CHECK(slots[p->slot].being_read == 0,
                "frames are about to be overwritten that another rank reads");
  make_room_for_image(p);
  copy_frames(p->image + (p->in_place_from - p->sp), at(p->in_place_from),
              until - p->in_place_from);
  p->in_place_from = until;
  ++counts.images_out;
}

}  // namespace

void get_image(piece* p, std::size_t bytes) {
  check_is_on_its_stack(p);
  std::free(p->image);
  // Allocates a little more than needed, for the next use of the descriptor. But pieces that share
  // stacks are very many, so these get no byte more.
  p->image_capacity = p->shares_stack ? bytes : std::max<std::size_t>(bytes, 512);
  p->image = static_cast<std::byte*>(std::malloc(p->image_capacity));
  if (p->image == nullptr) {
    p->image_capacity = 0;
    throw std::bad_alloc();
  }
}

namespace {

/// Memory of descriptors. It is never given back: there are as many as were ever alive at once.
struct piece_block {
  piece pieces[pieces_at_once];
  piece_block* next = nullptr;
};
piece_block* blocks = nullptr;

/// The addresses of blocks depend only on how many there are: checkpoints rely on this.
piece_block* new_block() {
  auto* fresh = ::new (runtime_memory_at_end(sizeof(piece_block))) piece_block;
  fresh->next = std::exchange(blocks, fresh);
  return fresh;
}

}  // namespace

void more_pieces() {
  piece_block* fresh = new_block();
  for (piece& p : fresh->pieces) {
    p.next_ready = free_pieces;
    free_pieces = &p;
  }
}

std::uint32_t methods_were_suspended = 1;  // a restored job begins with such pieces

void each_piece(void (*visit)(piece* p, void* context), void* context) {
  for (piece_block* block = blocks; block != nullptr; block = block->next) {
    for (piece& p : block->pieces) {
      // Leaves out watches, which are no computations.
      if (p.hi != 0 && p.hi != everywhere) visit(&p, context);
    }
  }
}

void check_is_on_its_stack(const piece* p) {
  if (p->bytes() <= slots.high(p->slot) - slots.low(p->slot)) return;
  die("a fiber waits or migrates on a stack that the program has made (makecontext(), a library of "
      "coroutines), in a fork, an activation or among very many fibers, where its frames have to "
      "be "
      "moved: do that in the body of run(), in a call or in a thread, and beside fewer fibers");
}

void free_piece(piece* p) {
  --pieces_in_use;
  std::byte* image = p->image;
  std::size_t capacity = p->image_capacity;
  if (capacity > pooled_image_bytes) {
    std::free(image);
    image = nullptr;
    capacity = 0;
  }
  // Cleared now, when nobody waits, and not when it is taken. each_piece recognises a free
  // descriptor by its `hi` of 0.
  *p = piece{};
  p->image = image;
  p->image_capacity = capacity;
  p->next_ready = free_pieces;
  free_pieces = p;
}

void save_pieces(file_writer& to, const std::vector<piece*>& list,
                 void (*more)(const piece* p, file_writer& to)) {
  for (const piece_block* block = blocks; block != nullptr; block = block->next) to.put(block);
  to.put(static_cast<const piece_block*>(nullptr));
  to.put(list.size());
  std::vector<std::byte> frames;
  for (const piece* p : list) {
    to.put(p);
    to.put(*p);
    frames.resize(p->bytes());
    copy_out(p, frames.data());
    to.bytes(frames.data(), frames.size());
    more(p, to);
  }
}

void load_pieces(file_reader& from, void (*more)(piece* p, file_reader& from)) {
  if (blocks != nullptr) throw error("this rank has fibers before its checkpoint is restored");
  std::vector<piece_block*> found;
  while (auto* block = from.get<piece_block*>()) found.push_back(block);
  for (; !found.empty(); found.pop_back()) {
    if (new_block() != found.back()) {
      throw error("the runtime's own tables lie at other addresses in this process");
    }
  }
  std::vector<std::byte> frames;
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    auto* p = from.get<piece*>();
    from.get(*p);
    p->restored = true;
    p->next_in_slot = p->next_thread = nullptr;
    p->extra = nullptr;
    p->stamp = 0;
    if (p->since != 0) p->since = ticks();
    p->image = nullptr;
    p->image_capacity = 0;
    ++pieces_in_use;
    frames.resize(p->bytes());
    from.bytes(frames.data(), frames.size());
    copy_in(p, frames.data());
    more(p, from);
  }
  for (piece_block* block = blocks; block != nullptr; block = block->next) {
    for (piece& p : block->pieces) {
      if (p.hi == 0) p.next_ready = std::exchange(free_pieces, &p);
    }
  }
}

piece* new_watch() {
  piece* p = new_piece();
  --pieces_in_use;  // a watch never ends, so nobody need wait for its end
  p->hi = everywhere;
  return p;
}

void enlist(piece* p) {
  if (!slots[p->slot].unguarded) return add_in_place(p);
  slots.check(p->slot);
  piece* watch = slots[p->slot].in_place;
  for (piece* q = watch; q != nullptr; q = q->next_in_slot) {
    if (q == p) return;
  }
  p->next_in_slot = watch->next_in_slot;
  watch->next_in_slot = p;
}

void add_in_place(piece* p) {
  piece*& first = slots[p->slot].in_place;
  for (piece* q = first; q != nullptr; q = q->next_in_slot) {
    if (q == p) return;
  }
  p->next_in_slot = first;
  first = p;
}

void drop_in_place(piece* p) {
  for (piece** link = &slots[p->slot].in_place; *link != nullptr; link = &(*link)->next_in_slot) {
    if (*link == p) {
      *link = p->next_in_slot;
      p->next_in_slot = nullptr;
      return;
    }
  }
}

void place_with_images(piece* p) {
  stack_slot& slot = slots[p->slot];
  slots.open(p->slot);
  slots.check(p->slot);
  ++last_stamp;
  p->needed_from = p->sp;
  p->stamp = last_stamp;
  piece* oldest = p;
  if (is_kept(rule::ancestors_in_place)) {
    while (oldest->refers_to != nullptr && oldest->refers_to->slot == p->slot) {
      // The parent may have returned from the frames next to the child, so its frames may begin at
      // a higher address now.
      oldest->refers_to->needed_from = std::max(oldest->hi, oldest->refers_to->sp);
      oldest = oldest->refers_to;
      oldest->stamp = last_stamp;
    }
  }
  // All pieces are copied out before any is copied in.
  for (piece** link = &slot.in_place; *link != nullptr;) {
    piece* q = *link;
    if (is_kept(rule::evict_before_run))
      evict(q, q->stamp == last_stamp ? q->needed_from : oldest->hi);
    if (q->in_place_from >= q->hi) {
      *link = q->next_in_slot;
      q->next_in_slot = nullptr;
    } else {
      link = &q->next_in_slot;
    }
  }
  for (piece* q = p; q != nullptr; q = q->refers_to) {
    if (q->in_place_from > q->needed_from) {
      forget_frames(q->needed_from, q->in_place_from);
      copy_frames(at(q->needed_from), q->image + (q->needed_from - q->sp),
                  q->in_place_from - q->needed_from);
      q->in_place_from = q->needed_from;
      ++counts.images_in;
    }
    enlist(q);
    if (q == oldest) break;
  }
  // If the child has a stack of its own, its caller's frames are in another slot.
  piece* parent = oldest->refers_to;
  if (parent != nullptr && parent->slot != p->slot && is_kept(rule::ancestors_in_place))
    place(parent);
}

void make_image(piece* p) {
  make_room_for_image(p);
  copy_frames(p->image, at(p->sp), p->bytes());
  p->in_place_from = p->hi;
  ++counts.images_out;
}

void clear_slot(std::uint32_t index, std::uint64_t hi) {
  slots.check(index);
  for (piece** link = &slots[index].in_place; *link != nullptr;) {
    piece* q = *link;
    evict(q, hi);
    if (q->in_place_from >= q->hi) {
      *link = q->next_in_slot;
      q->next_in_slot = nullptr;
    } else {
      link = &q->next_in_slot;
    }
  }
}

void copy_out(const piece* p, std::byte* to) {
  std::size_t imaged = p->in_place_from - p->sp;
  if (imaged > 0) copy_frames(to, p->image, imaged);
  if (imaged < p->bytes()) copy_frames(to + imaged, at(p->in_place_from), p->bytes() - imaged);
}

std::byte* room_for(piece* p) {
  if (is_clear_below(p->slot, p->hi)) [[likely]] {
    slots.open(p->slot);
    forget_frames(p->sp, p->hi);
    p->in_place_from = p->sp;
    add_in_place(p);
    return reinterpret_cast<std::byte*>(p->sp);
  }
  make_room_for_image(p);
  p->in_place_from = p->hi;
  return p->image;
}

void copy_in(piece* p, const std::byte* from) { copy_frames(room_for(p), from, p->bytes()); }

void add_referrer(piece* parent, referrer* child) {
  referrer** link = &parent->referrers;
  while (*link != nullptr && (*link)->refers_under < child->refers_under) {
    link = &(*link)->next_referrer;
  }
  child->refers_to = parent;
  child->referred_by = link;
  child->next_referrer = std::exchange(*link, child);
  if (referrer* next = child->next_referrer) next->referred_by = &child->next_referrer;
}

void drop_referrer(referrer* child) {
  *child->referred_by = child->next_referrer;
  if (referrer* next = child->next_referrer) next->referred_by = child->referred_by;
  *child = referrer{};
}

void hand_over_referrer(referrer* from, referrer* to) {
  *to = *from;
  *to->referred_by = to;
  if (referrer* next = to->next_referrer) next->referred_by = &to->next_referrer;
  *from = referrer{};
}

}  // namespace sojourn::detail
