// SPDX-License-Identifier: Apache-2.0
#include "fiber/fork_links.hpp"

#include <algorithm>
#include <cstddef>

#include "base/clock.hpp"
#include "fiber/piece.hpp"
#include "sojourn/detail/running.hpp"

extern "C" {
extern const char sojourn_linked_child_returns[];
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
static_assert(sizeof(fork_site) == 56);
static_assert(offsetof(fork_sites, latest) == 0 && offsetof(fork_sites, all_counted) == 8);
#endif

namespace {

// A walk takes some 50 instructions for each frame, and a frame has about as many bytes; a link
// takes some 40 for each fork. A site stops using links when they have cost about as much as the
// walk that the last link has spared.
constexpr std::uint64_t bytes_a_link = 64;
constexpr std::uint64_t fewest_links = 4;
// A link is of no use if a fork without a link has begun below it. The site then tries links again
// when so many more children have blocked.
constexpr std::uint64_t blocked_until_tried_again = 32;

// How the child was cut off that was cut off last; the handler of its caller is about to begin.
cut_of_child last_cut = left_for_elsewhere;

/// True when both sides of the fork are frames of `p`, whose oldest frames may be those of a child
/// that was cut off at a link. (Where a coroutine of the program has a stack of its own, its frames
/// are not cut; that is noticed elsewhere.)
bool lies_in(const piece* p, const fork_link* link) {
  return link->at()<p->hi&& reinterpret_cast<std::uint64_t>(link)> reinterpret_cast<std::uint64_t>(
      __builtin_frame_address(0));
}

}  // namespace

void note_cut(cut_of_child how) { last_cut = how; }

bool fork_site::child_was_cut() {
  const cut_of_child how = last_cut;
  const bool is_linked = forks < links_until;
  if (how == left_for_elsewhere) return is_linked;
  const std::uint64_t bytes = how & ~(found_by_link | link_in_vain);
  bytes_cut += bytes;
  ++blocked;
  if ((how & link_in_vain) != 0) links_from = blocked + blocked_until_tried_again;
  // forked_at is 0 if the site has not forked on this rank and the caller of this child has come
  // from another rank. Such a site is in no list yet.
  if (SOJOURN_FORK_LINKS == 0 || blocked < links_from || forked_at == 0) {
    links_until = forks;
    return false;
  }
  links_until = forks + fewest_links + bytes / bytes_a_link;
  return true;
}

const fork_link* link_of(std::uint64_t mark_at, std::uint64_t sp) {
#if SOJOURN_FORK_LINKS
  const auto* link = reinterpret_cast<const fork_link*>(mark_at) - 1;
  const auto* returns_to = reinterpret_cast<const std::uint64_t*>(link) - 1;
  if (reinterpret_cast<std::uint64_t>(returns_to) < sp) return nullptr;
  return *returns_to == reinterpret_cast<std::uint64_t>(sojourn_linked_child_returns) ? link
                                                                                      : nullptr;
#else
  (void)mark_at, (void)sp;
  return nullptr;
#endif
}

void forget_fork_links() {
  // Counts a fork without a link that does not exist, so that no existing link is taken for the
  // youngest mark.
  sojourn_fork_links.youngest = 0;
  --sojourn_fork_links.others;
}

own_links links_of_arrival() {
  // A number that nobody has used before: if this piece had used it before, on any rank, a link
  // could look younger than an open fork.
  constexpr std::uint64_t scatter = 0x9e3779b97f4a7c15u;
  return {0, (ticks() + static_cast<std::uint64_t>(job.me)) * scatter};
}

fork_link* youngest_link(const piece* p) {
  fork_link* const link = youngest_known_link();
  if (link == nullptr || !lies_in(p, link)) return nullptr;
  if (link->by_tables() != forks_by_tables()) return nullptr;
  const auto mark_in_frame = reinterpret_cast<std::uint64_t>(running.youngest);
  return mark_in_frame == 0 || mark_in_frame > link->at() ? link : nullptr;
}

std::uint64_t end_of_next(const piece* p, const fork_link* link) {
  const bool has_mark = reinterpret_cast<std::uint64_t>(running.youngest) - 1 < p->hi - 1;
  const std::uint64_t of_mark =
      has_mark ? reinterpret_cast<std::uint64_t>(running.youngest->sp) : ~std::uint64_t{0};
  if (is_oldest(link)) return of_mark;
  const fork_link* const older = link->older();
  if (older == nullptr || !lies_in(p, older) || older->by_tables() != link->by_tables()) return 0;
  return std::min(older->at(), of_mark);
}

std::vector<fork_site_use> fork_site_uses() {
  std::vector<fork_site_use> uses;
  if (sojourn_fork_sites.all_counted == 0) return uses;
  for (const fork_site* s = sojourn_fork_sites.latest; s != nullptr; s = s->next) {
    uses.push_back({reinterpret_cast<std::uint64_t>(s), s->forked_at, s->forks, s->blocked,
                    s->bytes_cut, s->forks < s->links_until});
  }
  std::sort(uses.begin(), uses.end(),
            [](const auto& a, const auto& b) { return a.forks > b.forks; });
  return uses;
}

bool is_oldest(const fork_link* link) { return link->outer == 0 && link->by_tables() == 0; }

}  // namespace sojourn::detail
