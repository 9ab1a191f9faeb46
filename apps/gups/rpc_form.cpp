// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "common/fault.hpp"
#include "gups/forms.hpp"

namespace apps::gups {
namespace {

// This rank's words; set before the first update may come.
std::uint64_t* words;
std::uint64_t word_mask;

// A rank that only sends takes nothing from others, who then wait for room.
constexpr std::uint64_t updates_between_looks = 256;

void apply(std::uint64_t update) { words[update & word_mask] ^= update; }

/// Bundled, those of this rank too: no branch goes to and fro at random, and its words are updated
/// many at a time. So the two are two loops: in one the compiler may ask first whose an update is.
template <bool Bundled>
void send_updates(const settings& chosen, const places& of) {
  const int me = sojourn::rank_me();
  update_stream stream = updates_of(chosen, me);
  for (std::uint64_t i = 0; i < chosen.updates; ++i) {
    const std::uint64_t update = stream.next();
    const int owner = of.rank_of(update);
    if (!Bundled && owner == me) {
      apply(update);
    } else {
      sojourn::rpc_ff(owner, sojourn::nonblocking([](std::uint64_t u) { apply(u); }), update);
    }
    if (!Bundled && i % updates_between_looks == 0) sojourn::yield();
  }
}

}  // namespace

result run_rpc(const settings& chosen, bool bundled) {
  const int me = sojourn::rank_me();
  std::vector<std::uint64_t> table = new_table(chosen, me);
  const places of(chosen, sojourn::rank_count());
  words = table.data();
  word_mask = of.mask;

  split_meter meter;
  meter.start();
  sojourn::finish([&] {
    if (bundled) {
      const sojourn::aggregated bundles({.bytes = chosen.bundle_bytes});
      send_updates<true>(chosen, of);
    } else {
      send_updates<false>(chosen, of);
    }
  });
  meter.stop();
  return checked(chosen, meter, table);
}

result checked(const settings& chosen, const split_meter& meter, std::span<std::uint64_t> table) {
  const int ranks = sojourn::rank_count();
  const int me = sojourn::rank_me();
  result r;
  r.fault = first_fault(fault_of(count_errors(chosen, ranks, me, table)));
  r.seconds = meter.seconds();
  r.split = meter.split(seconds_alone(chosen, me));
  r.spent = meter.spent();
  return r;
}

}  // namespace apps::gups
