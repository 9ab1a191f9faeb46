// SPDX-License-Identifier: Apache-2.0
#include "em3d/field.hpp"

namespace apps::em3d {
namespace {

using sojourn::global_ptr;

/// A load for each value, where it is needed. (load_async, because load asks the system for the
/// bytes where the heap is not shared: it needs no part of the owner, but takes longer.)
result run_base(field& f) {
  const std::array pointers{f.pointers_of(e), f.pointers_of(h)};
  return run_steps(f, [&](kind k) {
    const global_ptr<const node>* from = pointers[k].data();
    update_all(f.nodes(k), f.weights[k], f.chosen.degree, [=](std::size_t edge) {
      const global_ptr<const node> p = from[edge];
      return p.is_local() ? p.local()->value : sojourn::load_async(p).get().value;
    });
    sojourn::barrier();
  });
}

/// Where my nodes begin among the ghosts of each rank.
std::vector<global_ptr<node>> ghosts_elsewhere(const field& f, kind k) {
  std::vector<global_ptr<node>> ghosts;
  for (int r = 0; r < sojourn::rank_count(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    ghosts.push_back(f.of_rank[k][i] + count_at(f.chosen, sojourn::rank_count(), r) +
                     f.from[k].given_at[i]);
  }
  return ghosts;
}

/// A store for each ghost, made by the owner of the node, which knows who needs it; all are on
/// their way before anybody waits.
result run_ghost(field& f) {
  const std::array into{ghosts_elsewhere(f, e), ghosts_elsewhere(f, h)};
  sojourn::completions done;
  return run_steps(f, [&](kind k) {
    const kind needed = other(k);
    const node* values = f.nodes(needed).data();
    for (std::size_t r = 0; r < into[needed].size(); ++r) {
      global_ptr<node> ghost = into[needed][r];
      for (const std::uint32_t place : f.from[needed].given[r]) {
        sojourn::store(ghost, values[place], done);
        ghost = ghost + 1;
      }
    }
    done.wait();
    sojourn::barrier();
    f.update(k);
  });
}

/// A put to each rank that needs values, with all of them.
result run_bulk(field& f) {
  const std::array into{ghosts_elsewhere(f, e), ghosts_elsewhere(f, h)};
  std::vector<std::vector<node>> values(f.from[e].given.size());
  sojourn::completions done;
  return run_steps(f, [&](kind k) {
    const kind needed = other(k);
    for (std::size_t r = 0; r < values.size(); ++r) {
      f.collect(needed, r, values[r]);
      if (values[r].empty()) continue;
      sojourn::put(std::span<const node>(values[r]), into[needed][r], done);
    }
    done.wait();
    sojourn::barrier();
    f.update(k);
  });
}

/// The same put, and after it a word of this rank's at the receiver that says of which phase it
/// is: nobody waits for ranks that send it nothing. Each rank hears from each that it is linked
/// with in every phase, so that none gets more than one ahead, whose ghosts are of the other kind.
result run_signal(field& f) {
  using word = sojourn::global_atomic<std::uint64_t>;
  const auto ranks = static_cast<std::size_t>(sojourn::rank_count());
  const int me = sojourn::rank_me();
  const std::array into{ghosts_elsewhere(f, e), ghosts_elsewhere(f, h)};
  const std::vector<int> linked = f.linked();
  std::array<global_ptr<word>, 2> mine;
  std::array<std::vector<global_ptr<word>>, 2> signals;
  for (const kind k : {e, h}) {
    mine[k] = sojourn::make_array<word>(me, ranks);
    signals[k] = sojourn::all_gather(mine[k]);
  }
  std::array<std::uint64_t, 2> phases{};
  std::vector<node> values;
  sojourn::completions signalled;
  const result r = run_steps(f, [&](kind k) {
    const kind needed = other(k);
    const std::uint64_t phase = ++phases[needed];
    for (const int to : linked) {
      const auto i = static_cast<std::size_t>(to);
      f.collect(needed, i, values);
      if (!values.empty()) sojourn::put(std::span<const node>(values), into[needed][i]);
      sojourn::atomic_store(signals[needed][i] + me, phase, signalled);
    }
    for (const int from : linked) {
      const word& signal = mine[needed].local()[from];
      while (signal.load() < phase) sojourn::yield();
    }
    f.update(k);
  });
  signalled.wait();
  sojourn::barrier();
  for (const kind k : {e, h}) sojourn::destroy_array(mine[k], ranks);
  return r;
}

}  // namespace

result run_onesided(const settings& chosen) {
  field f(chosen);
  if (chosen.variant == "base") return run_base(f);
  if (chosen.variant == "ghost") return run_ghost(f);
  return run_bulk(f);
}

result run_put_and_signal(const settings& chosen) {
  field f(chosen);
  return run_signal(f);
}

}  // namespace apps::em3d
