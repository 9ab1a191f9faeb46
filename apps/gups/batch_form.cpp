// SPDX-License-Identifier: Apache-2.0
#include "gups/forms.hpp"

namespace apps::gups {
namespace {

/// This rank's words.
class part {
 public:
  part(const settings& chosen, int rank)
      : words_(new_table(chosen, rank)), mask_(words_.size() - 1) {}

  void apply(sojourn::batch<std::uint64_t> updates) {
    std::uint64_t* const words = words_.data();
    const std::uint64_t mask = mask_;
    for (const std::uint64_t update : updates) words[update & mask] ^= update;
  }
  std::span<std::uint64_t> words() { return words_; }

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t mask_;
};

}  // namespace

result run_batch(const settings& chosen) {
  const int me = sojourn::rank_me();
  const places of(chosen, sojourn::rank_count());
  const auto parts = sojourn::make_sharded<part>(chosen, me);

  split_meter meter;
  meter.start();
  sojourn::finish_all(
      [&] {
        sojourn::bundle<&part::apply> updates(parts);
        update_stream stream = updates_of(chosen, me);
        for (std::uint64_t i = chosen.updates; i != 0; --i) {
          const std::uint64_t update = stream.next();
          updates.to(of.rank_of(update), update);
        }
      },
      sojourn::team::world(), {.bytes = chosen.bundle_bytes});
  meter.stop();
  const result r = checked(chosen, meter, parts.here().words());
  parts.destroy();
  return r;
}

}  // namespace apps::gups
