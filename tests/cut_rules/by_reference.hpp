// SPDX-License-Identifier: Apache-2.0
// By-reference children: computations that read and write the frames of whoever started them.
#pragma once

#include <alloca.h>

#include "objects.hpp"
#include "outcome.hpp"
#include "settings.hpp"

namespace cut_rules {

/// What a by-reference child may use of its parent's frame, where this lies.
struct shared_frame {
  const volatile u64* array;  ///< The parent's: first, first + 3, …
  u64 count;
  u64 first;
  u64* total;            ///< In the frame of the oldest by-reference ancestor.
  shared_frame* parent;  ///< Of the next older by-reference ancestor, or null.
  u64 seed;
  u64 depth;
  u64 out[4];  ///< Written by the child.
};

template <bool Real>
struct by_reference_child {
  shared_frame frame;
  child<Real> running;
};

template <bool Real>
u64 by_reference_body(shared_frame& s);

template <bool Real>
void start_by_reference(by_reference_child<Real>& c) {
  for (u64& o : c.frame.out) o = 0;
  shared_frame* s = &c.frame;
  c.running.fork_here([s] { return by_reference_body<Real>(*s); });
}

template <bool Real>
u64 join_by_reference(by_reference_child<Real>& c, u64 sum) {
  sum = mix(sum, c.running.join().value);
  for (u64 o : c.frame.out) sum = mix(sum, o);
  return sum;
}

/// Reads all that this child and its ancestors share.
inline void check_ancestors(const shared_frame& s, u64 seed, u64 depth) {
  if (s.seed != seed || s.depth != depth)
    fail(seed, "a by-reference child lost its parent's frame");
  for (const shared_frame* p = &s; p != nullptr; p = p->parent) {
    for (u64 i = 0; i < p->count; ++i) {
      if (p->array[i] != p->first + 3 * i) {
        fail(seed, "word %llu of an ancestor's array is not in place",
             static_cast<unsigned long long>(i));
      }
    }
  }
}

/// The boundary of this piece is by reference: alone it must stay.
inline void expect_by_reference_stays(u64 seed, u64 x) {
  int to = other_rank_of(x);
  int from = sojourn::rank_me();
  if (to == from) return;
  if (sojourn::migrate_to(to) && watch_rules())
    fail(seed, "a by-reference child moved away from its parent");
  happened(event::refused_by_reference);
}

template <bool Real>
[[gnu::noinline]] u64 by_reference_body(shared_frame& s) {
  const u64 seed = s.seed;
  const u64 depth = s.depth;
  random_numbers random(seed);
  const u64 count = 3 + random() % 20;
  auto* array = static_cast<volatile u64*>(alloca(count * sizeof(u64)));
  for (u64 i = 0; i < count; ++i) array[i] = seed + 7 * i;
  auto check = [&] {
    if constexpr (Real) {
      for (u64 i = 0; i < count; ++i) {
        if (array[i] != seed + 7 * i) fail(seed, "a by-reference child's locals changed");
      }
      check_ancestors(s, seed, depth);
    }
  };
  auto yield = [] {
    if constexpr (Real) sojourn::yield();
  };
  auto call_node = [&](u64 x) { return node<Real>(x, depth - 1, sojourn::activation{}); };

  u64 sum = seed;
  const u64 steps = 1 + random() % 4;
  for (u64 k = 0; k < steps; ++k) {
    const u64 op = random() % 11;
    const u64 x = random();
    int before = sojourn::rank_me();
    bool waited = false;
    switch (op) {
      case 0:
      case 1:
        sum = mix(sum, outcome_of([&] {
                         if constexpr (Real) {
                           return sojourn::rpc(rank_of(x), remote_function<true>, x).get();
                         } else {
                           return remote_function<false>(x);
                         }
                       }).value);
        waited = true;
        break;
      case 2:
        yield();
        waited = true;
        break;
      case 3:
        if (depth == 0) break;
        sum =
            mix(sum, outcome_of([&] {
                       if constexpr (Real) {
                         return sojourn::activate(node<true>, x, depth - 1, sojourn::activation{});
                       } else {
                         return call_node(x);
                       }
                     }).value);
        waited = true;
        break;
      case 4:
      case 5: {
        if (depth == 0) break;
        child<Real> c;
        c.fork(node<Real>, x, depth - 1, sojourn::activation{});
        check();
        yield();
        check();
        sum = mix(sum, c.join().value);
        waited = true;
        break;
      }
      case 6:
        if constexpr (Real) expect_by_reference_stays(seed, x);
        break;
      case 7:
        // Parent and child together may go when the parent was called by value and neither is cut.
        if constexpr (Real) {
          int to = rank_of(x);
          bool moved = sojourn::migrate_to(
              to, x % 2 == 0 ? sojourn::via::migrate.activations(2) : sojourn::via::migrate.all());
          if (moved != (sojourn::rank_me() == to)) fail(seed, "migrate_to says where it is not");
          if (moved && before != to) happened(event::moved);
        }
        break;
      case 8:
      case 9: {
        if (depth == 0) break;
        by_reference_child<Real> inner;
        inner.frame = {array, count, seed, s.total, &s, x, depth - 1, {}};
        // This frame's words step by 7: give the child a view of the parent's instead.
        inner.frame.array = s.array;
        inner.frame.count = s.count;
        inner.frame.first = s.first;
        start_by_reference(inner);
        check();
        if (x % 2 == 0) yield();
        *s.total += x >> 2;
        sum = join_by_reference(inner, sum);
        waited = true;
        break;
      }
      case 10: {
        if (depth == 0) break;
        u64 here = sum;
        // Captures by reference: this activation stays, what it calls may move.
        auto body = [&]() -> u64 {
          if constexpr (Real) {
            sojourn::yield();
            here = mix(here, x);
            *s.total += x >> 3;
            return sojourn::activate(node<true>, x, s.depth - 1, sojourn::activation{});
          } else {
            here = mix(here, x);
            *s.total += x >> 3;
            return call_node(x);
          }
        };
        u64 v = outcome_of([&] {
                  if constexpr (Real) {
                    return sojourn::activate(body);
                  } else {
                    return body();
                  }
                }).value;
        sum = mix(here, v);
        waited = true;
        break;
      }
    }
    check();
    *s.total += x >> 1;
    s.out[k] = sum;
    if (Real && waited) happened(event::wrote_to_ancestor);
    check();
  }
  if (random() % 16 == 0) throw_one(sum);
  return sum;
}

}  // namespace cut_rules
