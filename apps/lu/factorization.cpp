// SPDX-License-Identifier: Apache-2.0
#include "lu/factorization.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/cpu_meter.hpp"

namespace apps::lu {

namespace {

using sojourn::global_ptr;
using sojourn::rank_me;
using sojourn::rank_t;

/// Blocks of other ranks that a rank works with: for some steps at a time, because a sender may be
/// ahead. It is so by as many steps as its row or column of the grid has ranks at most, for it
/// needs blocks of each of them in turn.
class visiting {
 public:
  explicit visiting(const layout& l)
      : blocks_(l.blocks()),
        numbers_(l.block_numbers()),
        steps_(static_cast<std::size_t>(std::max(l.rows(), l.columns())) + 1) {}

  std::size_t total() const { return steps_ * (2 * blocks_ + 1) * numbers_; }
  /// Places of blocks (k, k), (i, k) and (k, j) after the first number.
  std::size_t pivot(std::size_t k) const { return place(k, 2 * blocks_); }
  std::size_t of_column(std::size_t k, std::size_t i) const { return place(k, i); }
  std::size_t of_row(std::size_t k, std::size_t j) const { return place(k, blocks_ + j); }
  std::size_t border(std::size_t k, std::size_t i, std::size_t j) const {
    return i == k ? of_row(k, j) : of_column(k, i);
  }

 private:
  std::size_t place(std::size_t k, std::size_t block) const {
    return (k % steps_ * (2 * blocks_ + 1) + block) * numbers_;
  }
  std::size_t blocks_;
  std::size_t numbers_;
  std::size_t steps_;
};

/// What the ranks of a job know of each other's memory.
struct addresses {
  global_ptr<double> blocks;
  global_ptr<double> visitors;
};

/// A pivot block's column, or its row.
enum class side : std::uint8_t { column, row };

/// One rank's blocks, in the heap that all reach.
class share {
 public:
  explicit share(const layout& l)
      : places_(l),
        count_(l.count(rank_me()) * l.block_numbers()),
        at_{sojourn::make_array<double>(rank_me(), count_),
            sojourn::make_array<double>(rank_me(), places_.total())},
        mine_(l, rank_me(), at_.blocks.local()) {}
  ~share() {
    sojourn::destroy_array(at_.blocks, count_);
    sojourn::destroy_array(at_.visitors, places_.total());
  }
  share(const share&) = delete;
  share& operator=(const share&) = delete;

  part& mine() { return mine_; }
  const visiting& places() const { return places_; }
  const addresses& at() const { return at_; }
  const layout& shape() const { return mine_.shape(); }

  /// Before anything can come.
  void begin() {
    steps_.clear();
    for (std::size_t k = 0; k < shape().blocks(); ++k) {
      const bool waits = mine_.has_border(k) && !mine_.is_mine(k, k);
      std::ptrdiff_t border = 0;
      mine_.for_missing(k, [&](std::size_t, std::size_t) { ++border; });
      steps_.push_back(std::make_unique<step>(waits ? 1 : 0, border));
    }
  }

  void use_visitors(std::size_t k) {
    mine_.use_own_border(k);
    mine_.for_missing(k, [&](std::size_t i, std::size_t j) {
      mine_.use(k, i, j, visitor(places_.border(k, i, j)));
    });
  }
  double* visitor(std::size_t place) const { return at_.visitors.local() + place; }
  /// The pivot block of step k, once it is here.
  const double* pivot(std::size_t k) const {
    return mine_.is_mine(k, k) ? mine_.at(k, k) : visitor(places_.pivot(k));
  }
  // ---- Calls by other ranks -------------------------------------------------------------------

  void take_pivot(std::size_t k, sojourn::view<double> block) {
    std::ranges::copy(block, visitor(places_.pivot(k)));
    steps_[k]->pivot_here.count_down();
  }
  void take_border(std::size_t k, std::size_t place, sojourn::view<double> block) {
    std::ranges::copy(block, visitor(place));
    steps_[k]->border_here.count_down();
  }
  // ---- What those tell ------------------------------------------------------------------------

  void wait_for_pivot(std::size_t k) { steps_[k]->pivot_here.wait(); }
  void wait_for_border(std::size_t k) { steps_[k]->border_here.wait(); }
  void wait_until_solved(std::size_t k, side s) { solved(k, s).wait(); }
  void say_solved(std::size_t k, side s) { solved(k, s).count_down(); }

 private:
  struct step {
    step(std::ptrdiff_t pivot, std::ptrdiff_t border) : pivot_here(pivot), border_here(border) {}
    sojourn::latch pivot_here;
    sojourn::latch border_here;
    sojourn::latch column_solved{1};
    sojourn::latch row_solved{1};
  };
  sojourn::latch& solved(std::size_t k, side s) {
    return s == side::column ? steps_[k]->column_solved : steps_[k]->row_solved;
  }

  visiting places_;
  std::size_t count_;
  addresses at_;
  part mine_;
  std::vector<std::unique_ptr<step>> steps_;
};

/// Meanwhile others may need room for what they send, or blocks of this rank.
void serve_others() { sojourn::yield(); }

using shares = std::vector<global_ptr<share>>;

sojourn::view<double> argument(const share& s, const double* block) {
  return {block, s.shape().block_numbers()};
}

void send_pivot(share& here, const shares& all, std::size_t k) {
  here.mine().for_consumers(k, k, k, [&](rank_t to) {
    sojourn::rpc_ff(
        to,
        [](global_ptr<share> s, std::size_t step, sojourn::view<double> block) {
          s.local()->take_pivot(step, block);
        },
        all[static_cast<std::size_t>(to)], k, argument(here, here.pivot(k)));
  });
}

void send_border(share& here, global_ptr<share> there, std::size_t k, std::size_t i,
                 std::size_t j) {
  sojourn::rpc_ff(
      there.where(),
      [](global_ptr<share> s, std::size_t step, std::size_t place, sojourn::view<double> block) {
        s.local()->take_border(step, place, block);
      },
      there, k, here.places().border(k, i, j), argument(here, here.mine().at(i, j)));
}

/// The answer to a rank that asked: a call for each block, as soon as all of that side are solved.
/// So blocks come in any order, and are copied out of a message once.
void send_solved(share& here, global_ptr<share> asking, std::size_t k, side s) {
  here.wait_until_solved(k, s);
  const auto send = [&](std::size_t i, std::size_t j) { send_border(here, asking, k, i, j); };
  if (s == side::column) {
    here.mine().for_border_column(k, send);
  } else {
    here.mine().for_border_row(k, send);
  }
}

/// Asks the ranks that have what is missing: of the column the one in my row of ranks, of the row
/// the one in my column of them.
void ask_for_border(share& here, const shares& all, std::size_t k) {
  const global_ptr<share> me = all[static_cast<std::size_t>(rank_me())];
  rank_t asked = -1;
  here.mine().for_missing(k, [&](std::size_t i, std::size_t j) {
    const rank_t owner = here.shape().owner(i, j);
    if (owner == asked) return;
    asked = owner;
    sojourn::rpc_ff(
        owner,
        [](global_ptr<share> mine, std::size_t step, side s, global_ptr<share> asking) {
          send_solved(*mine.local(), asking, step, s);
        },
        all[static_cast<std::size_t>(owner)], k, i == k ? side::row : side::column, me);
  });
}

/// Those that have asked already get theirs now; the next block here takes longer than to send one.
void answer(share& here, std::size_t k, side s) {
  here.say_solved(k, s);
  serve_others();
}

void factorize_by_calls(share& here, const shares& all, exchange by) {
  part& mine = here.mine();
  for (std::size_t k = 0; k < here.shape().blocks(); ++k) {
    if (by == exchange::fetch) ask_for_border(here, all, k);
    if (mine.is_mine(k, k)) {
      mine.factor_pivot(k);
      send_pivot(here, all, k);
    }
    here.wait_for_pivot(k);
    const auto solved = [&](std::size_t i, std::size_t j) {
      if (by == exchange::fetch) return;
      mine.for_consumers(k, i, j, [&](rank_t to) {
        send_border(here, all[static_cast<std::size_t>(to)], k, i, j);
      });
    };
    mine.solve_border_column(k, here.pivot(k), solved);
    if (by == exchange::fetch) answer(here, k, side::column);
    mine.solve_border_row(k, here.pivot(k), solved);
    if (by == exchange::fetch) answer(here, k, side::row);
    here.wait_for_border(k);
    here.use_visitors(k);
    mine.update_inner(k, [] { serve_others(); });
  }
}

void put_block(const share& here, const double* block, global_ptr<double> to,
               sojourn::completions& done) {
  sojourn::put(std::span<const double>(block, here.shape().block_numbers()), to, done);
}

void factorize_one_sided(share& here, const std::vector<addresses>& all, exchange by) {
  part& mine = here.mine();
  const visiting& places = here.places();
  const auto visitors = [&](rank_t to, std::size_t place) {
    return all[static_cast<std::size_t>(to)].visitors + static_cast<std::ptrdiff_t>(place);
  };
  sojourn::completions done;
  for (std::size_t k = 0; k < here.shape().blocks(); ++k) {
    if (mine.is_mine(k, k)) {
      mine.factor_pivot(k);
      mine.for_consumers(k, k, k, [&](rank_t to) {
        put_block(here, here.pivot(k), visitors(to, places.pivot(k)), done);
      });
      done.wait();
    }
    sojourn::barrier();
    mine.solve_border(k, here.pivot(k), [&](std::size_t i, std::size_t j) {
      if (by == exchange::fetch) return;
      mine.for_consumers(k, i, j, [&](rank_t to) {
        put_block(here, mine.at(i, j), visitors(to, places.border(k, i, j)), done);
      });
    });
    done.wait();
    sojourn::barrier();
    if (by == exchange::fetch) {
      mine.for_missing(k, [&](std::size_t i, std::size_t j) {
        const auto place = here.shape().place(i, j) * here.shape().block_numbers();
        sojourn::get(all[static_cast<std::size_t>(here.shape().owner(i, j))].blocks +
                         static_cast<std::ptrdiff_t>(place),
                     std::span(here.visitor(places.border(k, i, j)), here.shape().block_numbers()),
                     done);
      });
      done.wait();
    }
    here.use_visitors(k);
    mine.update_inner(k, [] { serve_others(); });
  }
}

residual check_all(const settings& chosen, const std::vector<addresses>& all) {
  residual found;
  if (rank_me() == 0) {
    std::vector<double> numbers(chosen.shape.size * chosen.shape.size);
    std::size_t at = 0;
    for (rank_t r = 0; r < sojourn::rank_count(); ++r) {
      const std::size_t count = chosen.shape.count(r) * chosen.shape.block_numbers();
      sojourn::get(all[static_cast<std::size_t>(r)].blocks, std::span(&numbers[0] + at, count));
      at += count;
    }
    found = check(chosen.shape, chosen.seed, numbers);
  }
  sojourn::barrier();
  return found;
}

}  // namespace

result factorize(const settings& chosen) {
  const auto here = sojourn::make<share>(rank_me(), chosen.shape);
  share& my_share = *here.local();
  const auto all_shares = sojourn::all_gather(here);
  const auto all_addresses = sojourn::all_gather(my_share.at());

  const unit_costs cost = measure_unit_costs();
  std::vector<split_meter> meters(static_cast<std::size_t>(chosen.repeats));
  std::vector<result> all;
  for (split_meter& meter : meters) {
    my_share.mine().fill(chosen.seed);
    my_share.begin();
    meter.start(cost);
    if (chosen.how == form::rpc) {
      factorize_by_calls(my_share, all_shares, chosen.by);
    } else {
      factorize_one_sided(my_share, all_addresses, chosen.by);
    }
    meter.stop();
  }
  cpu_meter cpu;
  cpu.add([&] { part::compute_alone(chosen.shape, rank_me()); });
  for (const split_meter& meter : meters) {
    result r;
    r.seconds = meter.seconds();
    r.split = meter.split(cpu.seconds());
    r.spent = meter.spent();
    all.push_back(r);
  }
  std::ranges::sort(all, {}, &result::seconds);
  result middle = all[all.size() / 2];
  middle.fastest = all.front().seconds;
  middle.found = check_all(chosen, all_addresses);
  sojourn::destroy(here);
  return middle;
}

}  // namespace apps::lu
