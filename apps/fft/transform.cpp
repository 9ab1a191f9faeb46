// SPDX-License-Identifier: Apache-2.0
#include "fft/transform.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "common/cpu_meter.hpp"

namespace apps::fft {

namespace {

using sojourn::global_ptr;
using sojourn::rank_me;
using sojourn::rank_t;

/// One rank's rows, in the heap that all reach.
class share {
 public:
  explicit share(const layout& l)
      : count_(l.share()),
        rows_(sojourn::make_array<complex>(rank_me(), count_)),
        block_(l.processors == 1 ? rows_ : sojourn::make_array<complex>(rank_me(), count_)),
        mine_(l, rank_me(), rows_.local(), block_.local()) {}
  ~share() {
    if (block_ != rows_) sojourn::destroy_array(block_, count_);
    sojourn::destroy_array(rows_, count_);
  }
  share(const share&) = delete;
  share& operator=(const share&) = delete;

  part& mine() { return mine_; }
  global_ptr<complex> block() const { return block_; }

  /// Calls by other ranks: elements of the block have come.
  void place(std::size_t at, sojourn::view<complex> elements) {
    std::memcpy(block_.local() + at, elements.data(), elements.size() * sizeof(complex));
    outstanding_ -= elements.size();
    if (outstanding_ == 0) all_here_.release();
  }
  /// Before any can come.
  void expect_chunks() { outstanding_ = count_ - mine_.shape().chunk(); }
  /// Suspends until all that was expected has come.
  void wait_for_chunks() { all_here_.acquire(); }

 private:
  std::size_t count_;
  global_ptr<complex> rows_;
  global_ptr<complex> block_;
  part mine_;
  std::size_t outstanding_ = 0;
  sojourn::semaphore all_here_{0};
};

/// What of a chunk goes in a call: long enough that a call's cost does not show, short enough that
/// it is still in the second-level cache when it is copied the second time.
constexpr std::size_t elements_a_call = (64u << 10) / sizeof(complex);

void remap_by_calls(share& here, const std::vector<global_ptr<share>>& shares) {
  part& mine = here.mine();
  const std::size_t chunk = mine.shape().chunk();
  const std::size_t my_place = static_cast<std::size_t>(rank_me()) * chunk;
  for (int round = 1; round < sojourn::rank_count(); ++round) {
    const rank_t to = mine.partner(round);
    for (std::size_t done = 0; done < chunk; done += elements_a_call) {
      sojourn::rpc_ff(
          to,
          [](global_ptr<share> there, std::size_t at, sojourn::view<complex> elements) {
            there.local()->place(at, elements);
          },
          shares[static_cast<std::size_t>(to)], my_place + done,
          sojourn::view<complex>(mine.outgoing(to) + done,
                                 std::min(elements_a_call, chunk - done)));
      sojourn::yield();  // What has come from others is copied while it is in a cache.
    }
  }
  mine.keep_own();
  if (sojourn::rank_count() > 1) here.wait_for_chunks();
}

void remap_by_puts(share& here, const std::vector<global_ptr<complex>>& blocks) {
  part& mine = here.mine();
  const std::size_t chunk = mine.shape().chunk();
  const auto my_place = static_cast<std::ptrdiff_t>(rank_me()) * static_cast<std::ptrdiff_t>(chunk);
  sojourn::completions done;
  for (int round = 1; round < sojourn::rank_count(); ++round) {
    const rank_t to = mine.partner(round);
    sojourn::put(std::span<const complex>(mine.outgoing(to), chunk),
                 blocks[static_cast<std::size_t>(to)] + my_place, done);
  }
  mine.keep_own();
  done.wait();
  sojourn::barrier();
}

errors check(const settings& chosen, const std::vector<global_ptr<complex>>& blocks) {
  errors found;
  if (rank_me() == 0) {
    std::vector<complex> spectrum(chosen.shape.points());
    std::vector<complex> block(chosen.shape.share());
    for (rank_t r = 0; r < sojourn::rank_count(); ++r) {
      sojourn::get(blocks[static_cast<std::size_t>(r)], std::span(block));
      put_in_order(chosen.shape, r, block.data(), spectrum);
    }
    found = compare(chosen.shape, chosen.seed, spectrum);
  }
  sojourn::barrier();
  return found;
}

}  // namespace

result transform(const settings& chosen) {
  const auto here = sojourn::make<share>(rank_me(), chosen.shape);
  share& my_share = *here.local();
  part& mine = my_share.mine();
  const auto shares = sojourn::all_gather(here);
  const auto blocks = sojourn::all_gather(my_share.block());

  const unit_costs cost = measure_unit_costs();
  std::vector<result> all;
  for (int i = 0; i < chosen.repeats; ++i) {
    mine.fill(chosen.seed);
    my_share.expect_chunks();
    cpu_meter cpu;
    split_meter meter;
    meter.start(cost);
    cpu.add([&] { mine.first_steps(); });
    if (chosen.how == form::rpc) {
      remap_by_calls(my_share, shares);
    } else {
      remap_by_puts(my_share, blocks);
    }
    cpu.add([&] { mine.last_steps(); });
    meter.stop();
    all.push_back(
        {.seconds = meter.seconds(), .split = meter.split(cpu.seconds()), .spent = meter.spent()});
  }
  std::ranges::sort(all, {}, &result::seconds);
  result middle = all[all.size() / 2];
  middle.fastest = all.front().seconds;
  middle.found = check(chosen, blocks);
  sojourn::destroy(here);
  return middle;
}

}  // namespace apps::fft
