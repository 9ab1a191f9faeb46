// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/arrivals.hpp"
#include "em3d/field.hpp"

namespace apps::em3d {
namespace {

using sojourn::global_ptr;

/// A call for each value, where it is needed.
result run_base(field& f) {
  const std::array pointers{f.pointers_of(e), f.pointers_of(h)};
  return run_steps(f, [&](kind k) {
    const global_ptr<const node>* from = pointers[k].data();
    update_all(f.nodes(k), f.weights[k], f.chosen.degree,
               [=](std::size_t edge) { return from[edge].call<&node::read>(); });
    sojourn::barrier();
  });
}

/// Where this rank's ghosts arrive, by calls of other ranks.
struct mailbox {
  explicit mailbox(field& f) : ghosts{f.ghosts(e), f.ghosts(h)} { here = this; }

  void take(kind k, std::uint32_t ghost, node value) {
    ghosts[k][ghost] = value;
    came[k].arrived();
  }
  void take_all(kind k, std::uint32_t first, sojourn::view<node> values) {
    std::ranges::copy(values, ghosts[k].begin() + first);
    came[k].arrived();
  }

  std::array<std::span<node>, 2> ghosts;
  arrivals came[2];

  static inline mailbox* here;
};

/// A call for each ghost, made by the owner of the node, which knows who needs it; all are on their
/// way before anybody waits.
result run_ghost(field& f) {
  mailbox box(f);
  return run_steps(f, [&](kind k) {
    const kind needed = other(k);
    const exchange& x = f.from[needed];
    const node* values = f.nodes(needed).data();
    for (int r = 0; r < sojourn::rank_count(); ++r) {
      std::uint32_t ghost = x.given_at[static_cast<std::size_t>(r)];
      for (const std::uint32_t place : x.given[static_cast<std::size_t>(r)]) {
        sojourn::rpc_ff(
            r, [](kind of, std::uint32_t g, node n) { mailbox::here->take(of, g, n); }, needed,
            ghost++, values[place]);
      }
    }
    box.came[needed].wait(x.ghosts());
    f.update(k);
    sojourn::barrier();
  });
}

/// A call to each rank that needs values, with all of them.
result run_bulk(field& f) {
  mailbox box(f);
  const std::vector<int> linked = f.linked();
  std::vector<node> values;
  return run_steps(f, [&](kind k) {
    const kind needed = other(k);
    for (const int r : linked) {
      const auto i = static_cast<std::size_t>(r);
      f.collect(needed, i, values);
      sojourn::rpc_ff(
          r,
          [](kind of, std::uint32_t first, sojourn::view<node> v) {
            mailbox::here->take_all(of, first, v);
          },
          needed, f.from[needed].given_at[i], sojourn::view(values));
    }
    box.came[needed].wait(linked.size());
    f.update(k);
  });
}

}  // namespace

result run_rpc(const settings& chosen) {
  field f(chosen);
  if (chosen.variant == "base") return run_base(f);
  if (chosen.variant == "ghost") return run_ghost(f);
  return run_bulk(f);
}

}  // namespace apps::em3d
