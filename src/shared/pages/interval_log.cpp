// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/interval_log.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>

#include "base/check.hpp"

namespace sojourn::detail::pages {

interval_log::interval_log(int me, int ranks, std::size_t pages, std::pmr::memory_resource* memory,
                           interval mine)
    : me_(me),
      ranks_(ranks),
      pages_(pages),
      memory_(memory),
      known_(static_cast<std::size_t>(ranks), 0, memory),
      collected_(static_cast<std::size_t>(ranks), 0, memory),
      of_(static_cast<std::size_t>(ranks), memory) {
  known_[static_cast<std::size_t>(me)] = collected_[static_cast<std::size_t>(me)] = mine;
}

interval_log::~interval_log() {
  for (auto& records : of_)
    for (interval_record* r : records) free(r);
}

interval_record* interval_log::make(std::uint16_t owner, interval index, std::uint32_t ranges,
                                    std::uint32_t versions) {
  const std::size_t size = block_bytes(ranges, versions);
  void* block = memory_->allocate(size, alignof(interval_record));
  bytes_ += size;
  return ::new (block) interval_record{owner, ranges, versions, index, 0};
}

void interval_log::free(interval_record* r) {
  const std::size_t size = block_bytes(r->range_count, r->version_count);
  bytes_ -= size;
  memory_->deallocate(r, size, alignof(interval_record));
}

const interval_record& interval_log::find(int owner, interval index) const {
  const auto q = static_cast<std::size_t>(owner);
  SOJOURN_CHECK(index > collected_[q] && index - collected_[q] <= of_[q].size(),
                "interval %u of rank %d, of which %u to %zu are known", index, owner,
                collected_[q] + 1, collected_[q] + of_[q].size());
  return *of_[q][index - collected_[q] - 1];
}

namespace {

interval* clock_of(interval_record& r) { return reinterpret_cast<interval*>(&r + 1); }
listed_range* pages_of(interval_record& r, int ranks) {
  return reinterpret_cast<listed_range*>(clock_of(r) + ranks);
}
page_version* versions_of(interval_record& r, int ranks) {
  return reinterpret_cast<page_version*>(pages_of(r, ranks) + r.range_count);
}
std::uint64_t sum(const interval* clock, int ranks) {
  return std::accumulate(clock, clock + ranks, std::uint64_t{0});
}

}  // namespace

const interval_record& interval_log::close(const interval_pages& pages) {
  const auto me = static_cast<std::size_t>(me_);
  if (known_[me] == std::numeric_limits<interval>::max()) [[unlikely]]
    die("rank %d has released what it stored to shared memory %u times, which are all that a job "
        "can count: save what it has computed, and go on in another job",
        me_, known_[me]);
  interval_record* r = make(static_cast<std::uint16_t>(me_), ++known_[me],
                            static_cast<std::uint32_t>(pages.ranges.size()),
                            static_cast<std::uint32_t>(pages.versions.size()));
  std::copy(known_.begin(), known_.end(), clock_of(*r));
  std::copy(pages.ranges.begin(), pages.ranges.end(), pages_of(*r, ranks_));
  std::copy(pages.versions.begin(), pages.versions.end(), versions_of(*r, ranks_));
  r->order = sum(clock_of(*r), ranks_);
  of_[me].push_back(r);
  ++changes_;
  return *r;
}

void interval_log::write(message_writer& to, std::span<const interval> base,
                         std::span<const interval> up_to, std::span<const interval> like) const {
  std::uint32_t count = 0;
  const auto each = [&](auto visit) {
    for (std::size_t q = 0; q < of_.size(); ++q)
      // Records up to the last collection are not needed: the receiver has left the barrier at
      // which they were collected.
      for (interval i = std::max(base[q], collected_[q]); i < up_to[q]; ++i)
        visit(find(static_cast<int>(q), i + 1));
  };
  each([&](const interval_record&) { ++count; });
  to.put(count);
  each([&](const interval_record& r) {
    to.put(r.owner);
    to.put(r.range_count);
    to.put(r.version_count);
    to.put_clock(r.clock(ranks_), like);
    like = r.clock(ranks_);
    to.put_bytes(r.pages(ranks_).data(), r.pages(ranks_).size_bytes());
    to.put_bytes(r.versions(ranks_).data(), r.versions(ranks_).size_bytes());
  });
}

/// Refuses a record with impossible pages, because the functions that go through its pages later
/// check nothing.
void interval_log::check(const page_message_reader& from, const interval_record& r) const {
  std::size_t listed = 0;
  for (const listed_range& range : r.pages(ranks_)) {
    from.require(range.count != 0 && range.count <= pages_ && range.first <= pages_ - range.count,
                 "lists pages that do not exist");
    listed += range.count;
  }
  from.require(listed <= pages_, "lists pages twice");
}

/// Reads a record. `clock`: the clock of the record before it, which becomes that of this record.
interval_record* interval_log::read_record(page_message_reader& from, vector_clock& clock) {
  const auto owner = from.take<std::uint16_t>();
  const auto ranges = from.take<std::uint32_t>();
  const auto versions = from.take<std::uint32_t>();
  from.require(owner < ranks_, "names a rank that does not exist");
  from.require(ranges <= from.rest().size() / sizeof(listed_range) &&
                   versions <= from.rest().size() / sizeof(page_version),
               "ends before what it says it holds");
  from.take_clock(clock, clock);
  check_clock(from, clock);
  interval_record* r = make(owner, clock[owner], ranges, versions);
  std::copy(clock.begin(), clock.end(), clock_of(*r));
  const auto take = [&](void* to, std::size_t size) {
    const auto bytes = from.take_bytes(size);
    if (size != 0) std::memcpy(to, bytes.data(), size);
  };
  take(pages_of(*r, ranks_), ranges * sizeof(listed_range));
  take(versions_of(*r, ranks_), versions * sizeof(page_version));
  r->order = sum(clock_of(*r), ranks_);
  check(from, *r);
  return r;
}

void interval_log::collect(std::span<const interval> collected) {
  for (std::size_t q = 0; q < of_.size(); ++q) {
    for (; collected_[q] < collected[q] && !of_[q].empty(); ++collected_[q]) {
      free(of_[q].front());
      of_[q].pop_front();
    }
  }
}

}  // namespace sojourn::detail::pages
