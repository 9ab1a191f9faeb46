// SPDX-License-Identifier: Apache-2.0
#include "indexgather/forms.hpp"

#include <algorithm>
#include <functional>

#include "common/fault.hpp"

namespace apps::indexgather {
namespace {

// What calls from other ranks read and write here; set before the first may come.
const std::uint64_t* words;
std::uint64_t* found_here;
std::uint64_t missing;

void take(std::uint32_t slot, std::uint64_t value) {
  found_here[slot] = value;
  --missing;
}
void look_up(sojourn::rank_t from, std::uint32_t word, std::uint32_t slot) {
  sojourn::rpc_ff(
      from, sojourn::nonblocking([](std::uint32_t s, std::uint64_t value) { take(s, value); }),
      slot, words[word]);
}

result checked(const settings& chosen, const split_meter& meter,
               const std::vector<std::uint64_t>& reads, const std::vector<std::uint64_t>& found) {
  result r;
  r.fault = first_fault(fault_of(reads, found));
  r.seconds = meter.seconds();
  r.split = meter.split(seconds_alone(chosen, sojourn::rank_me()));
  r.spent = meter.spent();
  return r;
}

}  // namespace

result run_rpc(const settings& chosen) {
  const int me = sojourn::rank_me();
  const places of(chosen);
  const std::vector<std::uint64_t> table = make_table(chosen, me);
  const std::vector<std::uint64_t> reads = make_reads(chosen, sojourn::rank_count(), me);
  std::vector<std::uint64_t> found(reads.size());
  words = table.data();
  found_here = found.data();
  missing = static_cast<std::uint64_t>(
      std::ranges::count_if(reads, [&](std::uint64_t word) { return of.rank_of(word) != me; }));

  split_meter meter;
  meter.start();
  {
    const sojourn::aggregated bundles({.bytes = chosen.bundle_bytes});
    for (std::uint32_t i = 0; i < chosen.reads; ++i) {
      const int owner = of.rank_of(reads[i]);
      const std::uint32_t word = of.word_of(reads[i]);
      if (owner == me) {
        found[i] = table[word];
      } else {
        sojourn::rpc_ff(
            owner,
            [](sojourn::rank_t from, std::uint32_t w, std::uint32_t slot) {
              look_up(from, w, slot);
            },
            me, word, i);
      }
    }
    sojourn::flush();
    // Counted here, not by a finish: a bundle is of one finish, and this rank's reads and its
    // answers to another's would take turns in those to it.
    while (missing != 0) sojourn::yield();
    sojourn::barrier();  // others' reads are answered by bundles, too
  }
  meter.stop();
  return checked(chosen, meter, reads, found);
}

result run_onesided(const settings& chosen) {
  const int me = sojourn::rank_me();
  const places of(chosen);
  const std::vector<std::uint64_t> values = make_table(chosen, me);
  const std::vector<std::uint64_t> reads = make_reads(chosen, sojourn::rank_count(), me);
  std::vector<std::uint64_t> found(reads.size());
  const auto mine = sojourn::make_array<std::uint64_t>(me, values.size());
  std::ranges::copy(values, mine.local());
  const auto table = sojourn::all_gather(mine);

  split_meter meter;
  meter.start();
  {
    const sojourn::aggregated bundles({.bytes = chosen.bundle_bytes});
    sojourn::completions done;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const auto owner = static_cast<std::size_t>(of.rank_of(reads[i]));
      sojourn::load(table[owner] + of.word_of(reads[i]), found[i], done);
    }
    done.wait();
  }
  meter.stop();
  result r = checked(chosen, meter, reads, found);
  sojourn::destroy_array(mine, values.size());
  return r;
}

}  // namespace apps::indexgather
