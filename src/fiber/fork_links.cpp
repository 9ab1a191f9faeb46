// SPDX-License-Identifier: Apache-2.0
#include "fiber/fork_links.hpp"

#include <algorithm>
#include <cstddef>

#include "fiber/piece.hpp"
#include "sojourn/detail/running.hpp"

extern "C" {
sojourn::detail::fork_links sojourn_fork_links;
}

namespace sojourn::detail {

#if SOJOURN_FORK_LINKS
// sojourn_call_linked knows these.
static_assert(offsetof(counts_page, forks) == 312);
static_assert(offsetof(fork_site, links_left) == 0);
static_assert(sizeof(fork_site) == 8);
#endif

namespace {

// A walk takes some instructions for each frame, which has some bytes; a link takes as many again
// for each fork. A site goes without links when these have cost about as much as the walk that the
// last child which blocked has been spared.
constexpr std::uint32_t fewest_links = 32;
constexpr std::uint64_t bytes_a_link = 64;
// The first child that blocks may be the only one.
constexpr std::uint32_t blocked_until_links = 2;

// Of the child that was cut off last.
std::uint64_t bytes_cut_off = 0;

bool lies_in(const piece* p, const void* address) {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  // Not where a coroutine of the program has its own stack.
  return at < p->hi && at > reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
}

}  // namespace

void note_cut(std::uint64_t bytes) { bytes_cut_off = bytes; }

bool fork_site::child_was_cut() {
  links_left = fewest_links + static_cast<std::uint32_t>(
                                  std::min<std::uint64_t>(bytes_cut_off / bytes_a_link, 1u << 16));
  if (SOJOURN_FORK_LINKS == 0 || ++blocked < blocked_until_links) return false;
  blocked = 0;
  return true;
}

void forget_fork_links() { sojourn_fork_links.youngest = nullptr; }

fork_link* youngest_link(const piece* p) {
  fork_link* const link = sojourn_fork_links.youngest;
  if (link == nullptr || !lies_in(p, link)) return nullptr;
  if (link->by_tables != sojourn_fork_links.by_tables()) return nullptr;
  const auto mark_in_frame = reinterpret_cast<std::uint64_t>(running.youngest);
  return mark_in_frame == 0 || mark_in_frame > link->at() ? link : nullptr;
}

std::uint64_t end_of_next(const piece* p, const fork_link* link) {
  const bool has_mark = running.youngest != nullptr && lies_in(p, running.youngest);
  const std::uint64_t of_mark =
      has_mark ? reinterpret_cast<std::uint64_t>(running.youngest->sp) : ~std::uint64_t{0};
  if (is_oldest(link)) return of_mark;
  const fork_link* const older = link->older;
  if (older == nullptr || !lies_in(p, older) || older->by_tables != link->by_tables) return 0;
  return std::min(older->at(), of_mark);
}

bool is_oldest(const fork_link* link) { return link->older == nullptr && link->by_tables == 0; }

}  // namespace sojourn::detail
