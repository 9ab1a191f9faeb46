// SPDX-License-Identifier: Apache-2.0
#include "fiber/fork_links.hpp"

#include <algorithm>
#include <cstddef>

#include "base/clock.hpp"
#include "fiber/piece.hpp"
#include "sojourn/detail/running.hpp"

extern "C" {
constinit sojourn::detail::fork_link_state sojourn_fork_links;
sojourn::detail::fork_sites sojourn_fork_sites;
}

namespace sojourn::detail {

#if SOJOURN_FORK_LINKS
// sojourn_call_linked knows these.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of a class with members and bases
static_assert(offsetof(counts_page, forks) == 312);
#pragma GCC diagnostic pop
static_assert(offsetof(fork_site, forks) == 0 && offsetof(fork_site, links_until) == 8);
static_assert(offsetof(fork_site, forked_at) == 32 && offsetof(fork_site, next) == 40);
static_assert(sizeof(fork_site) == 48);
static_assert(offsetof(fork_sites, latest) == 0 && offsetof(fork_sites, all_counted) == 8);
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

/// True when both sides of the fork are frames of `p`, whose oldest frames may be those of a child
/// that was cut off at a link. Not where a coroutine of the program has its own stack.
bool lies_in(const piece* p, const fork_link* link) {
  return link->at()<p->hi&& reinterpret_cast<std::uint64_t>(link)> reinterpret_cast<std::uint64_t>(
      __builtin_frame_address(0));
}

}  // namespace

void note_cut(std::uint64_t bytes) { bytes_cut_off = bytes; }

bool fork_site::child_was_cut() {
  links_until = forks + fewest_links + bytes_cut_off / bytes_a_link;
  bytes_cut += bytes_cut_off;
  return ++blocked >= blocked_until_links && SOJOURN_FORK_LINKS != 0;
}

void forget_fork_links() {
  // As if there were a fork without a link: the links that there are match no more.
  sojourn_fork_links.youngest = 0;
  --sojourn_fork_links.others;
}

own_links links_of_arrival() {
  // A number that was used before, in this piece and on any rank, could make a link look younger
  // than a fork that is open.
  constexpr std::uint64_t scatter = 0x9e3779b97f4a7c15u;
  return {0, (ticks() + static_cast<std::uint64_t>(job.me)) * scatter};
}

fork_link* youngest_link(const piece* p) {
  fork_link* const link = youngest_known_link();
  if (link == nullptr || !lies_in(p, link)) return nullptr;
  if (link->by_tables != forks_by_tables()) return nullptr;
  const auto mark_in_frame = reinterpret_cast<std::uint64_t>(running.youngest);
  return mark_in_frame == 0 || mark_in_frame > link->at() ? link : nullptr;
}

std::uint64_t end_of_next(const piece* p, const fork_link* link) {
  const bool has_mark = reinterpret_cast<std::uint64_t>(running.youngest) - 1 < p->hi - 1;
  const std::uint64_t of_mark =
      has_mark ? reinterpret_cast<std::uint64_t>(running.youngest->sp) : ~std::uint64_t{0};
  if (is_oldest(link)) return of_mark;
  const fork_link* const older = link->older();
  if (older == nullptr || !lies_in(p, older) || older->by_tables != link->by_tables) return 0;
  return std::min(older->at(), of_mark);
}

std::vector<fork_site_use> fork_site_uses() {
  std::vector<fork_site_use> uses;
  if (sojourn_fork_sites.all_counted == 0) return uses;
  for (const fork_site* s = sojourn_fork_sites.latest; s != nullptr; s = s->next) {
    const bool is_linked = s->blocked >= blocked_until_links && s->forks < s->links_until;
    uses.push_back({s->forked_at, s->forks, s->blocked, s->bytes_cut, is_linked});
  }
  std::sort(uses.begin(), uses.end(),
            [](const auto& a, const auto& b) { return a.forks > b.forks; });
  return uses;
}

bool is_oldest(const fork_link* link) { return link->outer == 0 && link->by_tables == 0; }

}  // namespace sojourn::detail
