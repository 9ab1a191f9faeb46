// SPDX-License-Identifier: Apache-2.0
#include "parmacs/image.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "fiber/piece.hpp"
#include "fiber/scheduler.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "parmacs/private_heap.hpp"
#include "sojourn/rpc.hpp"

// The linker makes these of the sections' names; absent in programs that `sojourn cc` has not
// linked.
extern "C" {
[[gnu::weak]] extern std::byte __start_sojourn_program_data[];
[[gnu::weak]] extern std::byte __stop_sojourn_program_data[];
[[gnu::weak]] extern std::byte __start_sojourn_program_bss[];
[[gnu::weak]] extern std::byte __stop_sojourn_program_bss[];
}

namespace sojourn::detail {

namespace {

using range = private_heap::range;

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t chunk = std::uint64_t{1} << 20;

void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

range data() {
  return {address_of(__start_sojourn_program_data), address_of(__stop_sojourn_program_data)};
}
range bss() {
  return {address_of(__start_sojourn_program_bss), address_of(__stop_sojourn_program_bss)};
}

bool contains(range r, std::uint64_t address) { return address >= r.low && address < r.high; }

/// By rank: what processes had from malloc() that came before the one that runs here, its creator,
/// its creator's creator and so on, of which this rank has got a copy. Of its own part, too, where
/// one of these was here.
std::vector<range> inherited;
/// This rank has a copy of earlier processes: what is zero now may not be zero here.
bool has_copy = false;

// --- On the rank of the new process

/// Only the pages that the frames of the copy are on: what the creator calls later lies below.
void open_stack(range stack) {
  const std::uint64_t slot = slots.low(slots.index_of(stack.low));
  const std::uint64_t first = stack.low / page * page;
  if ((first > slot && mprotect(pointer_to(slot), first - slot, PROT_NONE) != 0) ||
      mprotect(pointer_to(first), stack.high - first, PROT_READ | PROT_WRITE) != 0)
    die("out of memory: a copy of the stack of a process's creator cannot be mapped (%s)",
        std::strerror(errno));
}

void begin_copy(const std::vector<range>& heaps, range stack) {
  const auto me = static_cast<std::size_t>(job.me);
  for (std::size_t r = 0; r < inherited.size(); ++r)
    if (r != me) program_heap.close_copy(inherited[r]);
  inherited = heaps;
  program_heap.reset(inherited[me]);
  for (std::size_t r = 0; r < inherited.size(); ++r)
    if (r != me) program_heap.open_copy(inherited[r]);
  open_stack(stack);
}

void put(std::uint64_t at, std::span<const std::byte> bytes) {
  std::memcpy(pointer_to(at), bytes.data(), bytes.size());
}
void put_zeros(std::uint64_t at, std::uint64_t bytes) { std::memset(pointer_to(at), 0, bytes); }

bool note_copy() {
  const bool before = has_copy;
  has_copy = true;
  return before;
}

// --- On that of its creator

bool is_zero(std::uint64_t at, std::uint64_t bytes) {
  const auto* p = reinterpret_cast<const char*>(at);
  return *p == 0 && std::memcmp(p, p + 1, bytes - 1) == 0;
}

/// Sends ranges page by page, pages in a row together.
class sender {
 public:
  explicit sender(rank_t to) : to_(to) {}

  /// `zeros`: pages of zeros, too, for there may be others.
  void send(range r, bool zeros) {
    for (std::uint64_t at = r.low; at < r.high;) {
      std::uint64_t end = piece_end(at, r);
      const bool zero = is_zero(at, end - at);
      while (end < r.high && end - at < chunk) {
        const std::uint64_t next = piece_end(end, r);
        if (is_zero(end, next - end) != zero) break;
        end = next;
      }
      if (!zero) {
        const auto* bytes = reinterpret_cast<const std::byte*>(at);
        await(rpc(to_, put, at, std::span<const std::byte>(bytes, end - at)));
      } else if (zeros) {
        await(rpc(to_, put_zeros, at, end - at));
      }
      at = end;
    }
  }
  void finish() {
    for (future<void>& f : under_way_) f.get();
    under_way_.clear();
  }

 private:
  static std::uint64_t piece_end(std::uint64_t at, range r) {
    return std::min(r.high, (at / page + 1) * page);
  }
  void await(future<void> f) {
    under_way_.push_back(std::move(f));
    if (under_way_.size() == 8) finish();
  }

  rank_t to_;
  std::vector<future<void>> under_way_;
};

}  // namespace

bool in_program_globals(std::uint64_t address) {
  return contains(data(), address) || contains(bss(), address);
}

void send_image(rank_t to) {
  std::vector<range> heaps = inherited;
  heaps.resize(static_cast<std::size_t>(job.count));
  heaps[static_cast<std::size_t>(job.me)] = program_heap.seal();
  const piece* own = running_piece();
  const range stack{address_of(__builtin_frame_address(0)), own->hi};
  const bool has_copy_there = rpc(to, note_copy).get();
  rpc(to, begin_copy, heaps, stack).get();
  sender s(to);
  s.send(data(), true);
  s.send(bss(), has_copy_there);
  s.send(stack, has_copy_there);
  for (const range& heap : heaps) s.send(heap, false);
  s.finish();
}

}  // namespace sojourn::detail
