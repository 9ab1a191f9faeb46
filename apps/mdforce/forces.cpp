// SPDX-License-Identifier: Apache-2.0
#include "mdforce/forces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/arrivals.hpp"
#include "common/fault.hpp"
#include "common/split_meter.hpp"

namespace apps::mdforce {
namespace {

using sojourn::global_ptr;

/// An atom as its rank and others see it. Methods do not wait, so one runs at a time.
class atom {
 public:
  void put_at(const vec& position) { position_ = position; }
  void begin() { force_ = {}; }
  const vec& position() const { return position_; }
  vec coordinates() const { return position_; }
  void add(const vec& force) { force_ += force; }
  const vec& force() const { return force_; }

 private:
  vec position_;
  vec force_;
};

/// What this rank knows of an atom of another one, and what it has for it, in a step.
struct cached_atom {
  vec position;
  vec force;
  bool is_here = false;  ///< The position is.
};

/// Forces of a rank's pairs on an atom of another rank, together.
struct increment {
  global_ptr<atom> on;
  vec force;
};

/// A rank's part of the computation.
class part {
 public:
  part(const settings& s, std::span<const vec> positions, const layout& l)
      : own_(l.atoms[static_cast<std::size_t>(sojourn::rank_me())]),
        pairs_(find_pairs(positions, own_, s.cutoff)),
        force_between_(s.cutoff),
        mine_(sojourn::make_array<atom>(sojourn::rank_me(), own_.size())),
        others_(sojourn::rank_count()),
        cache_(positions.size()) {
    here = this;
    const auto of_rank = sojourn::all_gather(mine_);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      all_.push_back(of_rank[static_cast<std::size_t>(l.owner[i])] + l.place[i]);
    }
    for (std::size_t k = 0; k < own_.size(); ++k) mine_.local()[k].put_at(positions[own_[k]]);

    std::vector<std::uint32_t> partners = pairs_.partners;
    std::ranges::sort(partners);
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
    for (const std::uint32_t j : partners) {
      if (!all_[j].is_local()) others_[static_cast<std::size_t>(l.owner[j])].push_back(j);
    }
    std::vector<char> gives;
    for (const auto& atoms : others_) gives.push_back(atoms.empty() ? 0 : 1);
    for (const auto& of : sojourn::all_gather(gives)) {
      givers_ += static_cast<std::uint64_t>(of[static_cast<std::size_t>(sojourn::rank_me())]);
    }
  }
  ~part() { sojourn::destroy_array(mine_, own_.size()); }
  part(const part&) = delete;
  part& operator=(const part&) = delete;

  /// All forces, once more. Collective. Suspends.
  void step() {
    for (std::size_t k = 0; k < own_.size(); ++k) mine_.local()[k].begin();
    for (const auto& atoms : others_) {
      for (const std::uint32_t j : atoms) cache_[j] = {};
    }
    sojourn::barrier();  // From here on forces of others come.

    std::vector<sojourn::future<void>> children;
    for (std::size_t k = 0; k < own_.size(); ++k) {
      children.clear();
      for (const std::uint32_t j : pairs_.of(k)) {
        children.push_back(sojourn::fork([this, k, j] { interact(k, j); }));
      }
      sojourn::touch(std::span(children));
      for (auto& c : children) c.get();
      sojourn::yield();  // Other ranks wait for coordinates from here.
    }

    std::vector<increment> increments;
    for (std::size_t r = 0; r < others_.size(); ++r) {
      if (others_[r].empty()) continue;
      increments.clear();
      for (const std::uint32_t j : others_[r]) increments.push_back({all_[j], cache_[j].force});
      sojourn::rpc_ff(
          static_cast<int>(r),
          [](sojourn::view<increment> all) {
            for (const increment& i : all) i.on.local()->add(i.force);
            here->given_.arrived();
          },
          sojourn::view(increments));
    }
    given_.wait(givers_);
  }

  const std::vector<std::uint32_t>& atoms() const { return own_; }
  std::vector<vec> forces() const {
    std::vector<vec> f;
    for (std::size_t k = 0; k < own_.size(); ++k) f.push_back(mine_.local()[k].force());
    return f;
  }
  const encounters& met() const { return met_; }
  std::size_t pairs() const { return pairs_.size(); }
  /// Atoms of other ranks that this one's pairs need.
  std::size_t atoms_of_others() const {
    std::size_t all = 0;
    for (const auto& atoms : others_) all += atoms.size();
    return all;
  }

 private:
  /// One pair. Suspends when the other atom's coordinates are not on this rank.
  void interact(std::size_t k, std::uint32_t j) {
    atom& first = mine_.local()[k];
    const global_ptr<atom> second = all_[j];
    if (second.is_local()) {
      ++met_.local;
      const vec f = force_between_(own_[k], first.position(), j, second.local()->position());
      first.add(f);
      second.local()->add(-1 * f);
      return;
    }
    const vec f = force_between_(own_[k], first.position(), j, position_of(j));
    first.add(f);
    cache_[j].force -= f;
  }

  /// No two children that wait ask for the same atom: they are of one atom's pairs.
  const vec& position_of(std::uint32_t j) {
    cached_atom& c = cache_[j];
    if (c.is_here) {
      ++met_.cached;
      return c.position;
    }
    ++met_.fetched;
    c.position = all_[j].call<&atom::coordinates>(sojourn::via::rpc);
    c.is_here = true;
    return c.position;
  }

  const std::vector<std::uint32_t> own_;
  const pair_list pairs_;
  const interaction force_between_;
  const global_ptr<atom> mine_;
  std::vector<global_ptr<atom>> all_;
  std::vector<std::vector<std::uint32_t>> others_;  // of each rank, that pairs here need
  std::vector<cached_atom> cache_;                  // by number in the chain
  encounters met_;
  std::uint64_t givers_ = 0;  // ranks that have forces for atoms here
  arrivals given_;

  static inline part* here;
};

/// What is wrong with the numbers of things, on this rank.
std::string miscount(const settings& s, const part& p) {
  if (p.met().pairs() != s.steps * p.pairs()) {
    return fmt::format("{} pairs were computed in {} steps, of {} each", p.met().pairs(), s.steps,
                       p.pairs());
  }
  if (p.met().fetched != s.steps * p.atoms_of_others()) {
    return fmt::format("coordinates were fetched {} times in {} steps, of {} atoms each",
                       p.met().fetched, s.steps, p.atoms_of_others());
  }
  return {};
}

}  // namespace

result run(const settings& chosen) {
  const std::vector<vec> positions = make_chain(chosen);
  part mine(chosen, positions, make_layout(chosen, positions, sojourn::rank_count()));
  split_meter meter;
  meter.start({});
  for (std::uint32_t i = 0; i < chosen.steps; ++i) mine.step();
  meter.stop();

  const reference wanted = compute_alone(chosen, positions);
  const std::vector<vec> forces = mine.forces();
  std::string fault = difference(mine.atoms(), forces, wanted);
  if (fault.empty()) fault = miscount(chosen, mine);
  vec sum;
  for (const vec& f : forces) sum += f;
  sum = sojourn::reduce(sum, std::plus<>{});
  if (fault.empty()) fault = imbalance(sum, wanted);

  result r;
  r.fault = first_fault(fault);
  r.seconds = meter.seconds();
  r.seconds_alone = sojourn::broadcast(wanted.seconds) * chosen.steps;
  r.met = sojourn::reduce(mine.met(), std::plus<>{});
  r.spent = meter.spent();
  return r;
}

}  // namespace apps::mdforce
