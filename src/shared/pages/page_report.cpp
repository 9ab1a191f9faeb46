// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/page_report.hpp"

#include <algorithm>

#include "shared/pages/diff.hpp"

namespace sojourn::detail::pages {

namespace {

std::uint64_t bit_of(int rank) { return std::uint64_t{1} << std::min(rank, 63); }

}  // namespace

page_notes& page_notes::operator+=(const page_notes& other) {
  loads += other.loads;
  stores += other.stores;
  remote += other.remote;
  shared_epochs += other.shared_epochs;
  met_apart = std::max(met_apart, other.met_apart);
  met_on_a_byte = std::max(met_on_a_byte, other.met_on_a_byte);
  writers |= other.writers;
  return *this;
}

page_report::kept_diff::kept_diff(const interval_record& of, int ranks,
                                  std::span<const std::byte> diff,
                                  std::pmr::memory_resource* memory)
    : owner(of.owner), index(of.index), clock(memory), bytes(diff.begin(), diff.end(), memory) {
  const auto known = of.clock(ranks);
  clock.assign(known.begin(), known.end());
}

void page_report::fault(page_number page, bool store, bool remote, std::uint64_t code) {
  page_notes& p = pages_[page];
  if (remote) ++p.remote;
  ++(store ? p.stores : p.loads);
  ++sites_[{page, code}];
}

void page_report::several_writers(page_number page, int one, int other, bool first) {
  page_notes& p = pages_[page];
  if (first) ++p.shared_epochs;
  p.writers |= bit_of(one) | bit_of(other);
}

void page_report::meet(page_number page, const interval_record& of,
                       std::span<const std::byte> diff) {
  if (diff.empty()) return;
  auto& met = met_[page];
  const auto is_known = [&](const kept_diff& k) {
    return k.owner == of.owner && k.index == of.index;
  };
  if (std::any_of(met.begin(), met.end(), is_known)) return;
  const kept_diff& news = met.emplace_back(of, ranks_, diff, met_.get_allocator().resource());
  page_notes& p = pages_[page];
  for (const kept_diff& k : met) {
    if (k.owner == news.owner || k.before(news) || news.before(k)) continue;
    p.writers |= bit_of(k.owner) | bit_of(news.owner);
    const auto byte =
        first_overlap(k.bytes.data(), k.bytes.size(), news.bytes.data(), news.bytes.size());
    if (!byte) {
      ++p.met_apart;
      continue;
    }
    ++p.met_on_a_byte;
    const auto offset = static_cast<std::uint32_t>(*byte);
    const int low = std::min(k.owner, news.owner);
    const int high = std::max(k.owner, news.owner);
    const auto at = races_.try_emplace({page, low, high}, found{offset, 0}).first;
    at->second.offset = std::min(at->second.offset, offset);
    ++at->second.times;
  }
}

std::vector<race_note> page_report::races() const {
  std::vector<race_note> all;
  for (const auto& [key, f] : races_) {
    const auto& [page, low, high] = key;
    all.push_back({page, f.offset, {low, high}, f.times});
  }
  return all;
}

}  // namespace sojourn::detail::pages
