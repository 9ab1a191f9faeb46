// SPDX-License-Identifier: Apache-2.0
#include "em3d/field.hpp"

namespace apps::em3d {
namespace {

using sojourn::global_ptr;

/// A load for each value, where it is needed.
result run_base(field& f) {
  const std::array pointers{f.pointers_of(e), f.pointers_of(h)};
  return run_steps(f, [&](kind k) {
    const global_ptr<const node>* from = pointers[k].data();
    update_all(f.nodes(k), f.weights[k], f.chosen.degree, [=](std::size_t edge) {
      const global_ptr<const node> p = from[edge];
      return p.is_local() ? p.local()->value : sojourn::load(p).value;
    });
    sojourn::barrier();
  });
}

/// A get for each ghost, all on their way before the first is waited for.
result run_ghost(field& f) {
  return run_steps(f, [&](kind k) {
    const std::span<node> ghosts = f.ghosts(other(k));
    f.for_each_ghost(other(k), [&](std::uint32_t ghost, global_ptr<node> p) {
      ghosts[ghost] = sojourn::load(p);
    });
    f.update(k);
    sojourn::barrier();
  });
}

/// A put to each rank that needs values, with all of them.
result run_bulk(field& f) {
  std::vector<node> values;
  const std::vector<int> linked = f.linked();
  // Where my nodes lie among the other's ghosts.
  std::array<std::vector<global_ptr<node>>, 2> into;
  for (const kind k : {e, h}) {
    for (int r = 0; r < sojourn::rank_count(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      into[k].push_back(f.of_rank[k][i] + count_at(f.chosen, sojourn::rank_count(), r) +
                        f.from[k].given_at[i]);
    }
  }
  return run_steps(f, [&](kind k) {
    const kind needed = other(k);
    for (const int r : linked) {
      const auto i = static_cast<std::size_t>(r);
      f.collect(needed, i, values);
      if (!values.empty()) sojourn::put(std::span<const node>(values), into[needed][i]);
    }
    sojourn::barrier();
    f.update(k);
  });
}

}  // namespace

result run_onesided(const settings& chosen) {
  field f(chosen);
  if (chosen.variant == "base") return run_base(f);
  if (chosen.variant == "ghost") return run_ghost(f);
  return run_bulk(f);
}

}  // namespace apps::em3d
