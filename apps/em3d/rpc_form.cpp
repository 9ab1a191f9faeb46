// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
class mailbox {
 public:
  /// `messages`: of how many calls a kind's ghosts come.
  mailbox(field& f, std::array<std::size_t, 2> messages) : field_(f), messages_(messages) {
    here = this;
  }

  void take(kind k, std::uint32_t ghost, node value) {
    field_.ghosts(k)[ghost] = value;
    count(k);
  }
  void take_all(kind k, std::uint32_t first, sojourn::view<node> values) {
    std::ranges::copy(values, field_.ghosts(k).begin() + first);
    count(k);
  }
  /// Until all of them have come.
  void wait(kind k) {
    if (messages_[k] > 0) complete_[k].acquire();
  }

  static inline mailbox* here;

 private:
  void count(kind k) {
    if (++arrived_[k] < messages_[k]) return;
    arrived_[k] = 0;
    complete_[k].release();
  }

  field& field_;
  std::array<std::size_t, 2> messages_;
  std::array<std::size_t, 2> arrived_{};
  sojourn::semaphore complete_[2]{sojourn::semaphore(0), sojourn::semaphore(0)};
};

/// A call for each ghost, made by the owner of the node, which knows who needs it; all are on their
/// way before anybody waits.
result run_ghost(field& f) {
  mailbox box(f, {f.from[e].ghosts(), f.from[h].ghosts()});
  return run_steps(f, [&](kind k) {
    const kind needed = other(k);
    const std::span<const node> values = f.nodes(needed);
    for (int r = 0; r < sojourn::rank_count(); ++r) {
      std::uint32_t ghost = f.from[needed].given_at[static_cast<std::size_t>(r)];
      for (const std::uint32_t place : f.from[needed].given[static_cast<std::size_t>(r)]) {
        sojourn::rpc_ff(
            r, [](kind of, std::uint32_t g, node n) { mailbox::here->take(of, g, n); }, needed,
            ghost++, values[place]);
      }
    }
    box.wait(needed);
    f.update(k);
    sojourn::barrier();
  });
}

/// A call to each rank that needs values, with all of them.
result run_bulk(field& f) {
  const std::vector<int> linked = f.linked();
  mailbox box(f, {linked.size(), linked.size()});
  std::vector<node> values;
  const auto done = run_steps(f, [&](kind k) {
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
    box.wait(needed);
    f.update(k);
  });
  return done;
}

}  // namespace

result run_rpc(const settings& chosen) {
  field f(chosen);
  if (chosen.variant == "base") return run_base(f);
  if (chosen.variant == "ghost") return run_ghost(f);
  return run_bulk(f);
}

}  // namespace apps::em3d
