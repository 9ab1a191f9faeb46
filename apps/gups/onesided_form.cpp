// SPDX-License-Identifier: Apache-2.0
#include "gups/forms.hpp"

namespace apps::gups {

result run_onesided(const settings& chosen) {
  using word = sojourn::global_atomic<std::uint64_t>;
  const int me = sojourn::rank_me();
  const places of(chosen, sojourn::rank_count());
  std::vector<std::uint64_t> values = new_table(chosen, me);
  const auto mine = sojourn::make_array<word>(me, of.words());
  for (std::size_t i = 0; i < values.size(); ++i) mine.local()[i].store(values[i]);
  const auto table = sojourn::all_gather(mine);

  split_meter meter;
  meter.start();
  {
    const sojourn::aggregated bundles({.bytes = chosen.bundle_bytes});
    sojourn::completions done;
    update_stream stream = updates_of(chosen, me);
    for (std::uint64_t i = 0; i < chosen.updates; ++i) {
      const std::uint64_t update = stream.next();
      const auto owner = static_cast<std::size_t>(of.rank_of(update));
      sojourn::atomic_xor(table[owner] + of.word_of(update), update, done);
    }
    done.wait();
  }
  meter.stop();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = mine.local()[i].load();
  sojourn::destroy_array(mine, of.words());
  return checked(chosen, meter, values);
}

}  // namespace apps::gups
