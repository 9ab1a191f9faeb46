// SPDX-License-Identifier: Apache-2.0
// The random programs: a tree of computations, each a function of its seed that is evaluated for
// real (Real = true: activations, forks, migrations, waits) and serially (plain calls), and must
// come to the same value. Its locals are looked at after every step.
#pragma once

#include <alloca.h>

#include <array>
#include <cfenv>
#include <unordered_set>

#include "by_reference.hpp"
#include "objects.hpp"
#include "outcome.hpp"
#include "settings.hpp"

namespace cut_rules {

template <bool Real>
class exception_steps;  // exceptions.hpp
template <bool Real>
class feature_steps;  // features.hpp

// One-way calls that this rank has made inside of finish scopes, and those that have ended.
inline u64 one_way_calls = 0;
inline std::unordered_set<u64> one_way_calls_ended;

/// Lies in the frame of its node.
template <bool Real>
class computation {
 public:
  computation(u64 seed, u64 depth, sojourn::activation oldest, volatile u64* array, u64 count)
      : seed_(seed),
        depth_(depth),
        oldest_(oldest),
        array_(array),
        count_(count),
        random_(seed),
        sum_(seed),
        began_on_(sojourn::rank_me()) {
    for (u64 i = 0; i < count_; ++i) array_[i] = seed_ + 3 * i;
    if (Real && seed_ / 32 % 4 == 0) oldest_ = sojourn::this_activation();
  }

  u64 run() {
    const u64 steps = 1 + random_() % 7;
    for (u64 k = 0; k < steps; ++k) {
      const u64 op = random_();
      step(op, random_());
      check();
    }
    while (shared_count_ > 0) join_shared();
    sum_ = mix(sum_, total_);
    const bool drop = random_() % 8 == 0;
    for (auto& c : children_) {
      if (!c.active()) continue;
      if (drop) {
        c.drop();
      } else {
        join(c);
      }
      check();
    }
    if (random_() % 12 == 0) throw_one(sum_);
    return sum_;
  }

 private:
  friend class exception_steps<Real>;
  friend class feature_steps<Real>;

  void add(u64 value) { sum_ = mix(sum_, value); }

  void check() const {
    if constexpr (Real) {
      for (u64 i = 0; i < count_; ++i) {
        if (array_[i] != seed_ + 3 * i) {
          fail(seed_, "word %llu of %llu of a local array changed",
               static_cast<unsigned long long>(i), static_cast<unsigned long long>(count_));
        }
      }
    }
  }

  /// Outside of catch blocks and destructors that an exception runs.
  void check_no_exception() const {
    if (Real && watch_rules()) {
      if (std::uncaught_exceptions() != 0) fail(seed_, "another's exception is being thrown here");
      if (std::current_exception() != nullptr) fail(seed_, "another's exception is handled here");
    }
  }

  void step(u64 op, u64 x) {
    check_no_exception();
    op %= 31;
    if (settings.skip >> op & 1) return;
    switch (op) {
      case 0:
        return remote_call(x);
      case 1:
        return wait(x);
      case 2:
      case 3:
        return activate(x);
      case 4:
      case 5:
      case 6:
        return fork(x);
      case 7:
        return join_any(x);
      case 8:
      case 9:
      case 10:
        return migrate(x);
      case 11:
      case 12:
      case 13:
        return fork_shared(x);
      case 14:
        if (shared_count_ > 0) join_shared();
        return;
      case 15:
      case 16:
        return exception_steps<Real>(*this).in_a_handler(x);
      case 17:
        return exception_steps<Real>(*this).in_unwinding(x);
      case 18:
        return call_object(x);
      case 19:
        return start_remote(x);
      case 20:
        return then(x);
      case 21:
        return stay(x);
      case 22:
        return finish(x);
      case 23:
        return large_result(x);
      case 24:
        return rounding(x);
      case 25:
        return feature_steps<Real>(*this).thread(x);
      case 26:
        return feature_steps<Real>(*this).lock(x);
      case 27:
        return feature_steps<Real>(*this).sleep(x);
      case 28:
        return feature_steps<Real>(*this).text(x);
      case 29:
        return feature_steps<Real>(*this).bundle(x);
      default:
        return remote_node(x);
    }
  }

  // Calls -----------------------------------------------------------------------------------------

  void remote_call(u64 x) {
    add(outcome_of([&] {
          if constexpr (Real) {
            return sojourn::rpc(rank_of(x), remote_function<true>, x).get();
          } else {
            return remote_function<false>(x);
          }
        }).value);
  }

  void wait([[maybe_unused]] u64 x) {
    if constexpr (Real) {
      if (x % 2 == 0) {
        sojourn::yield();
      } else {
        (void)sojourn::rpc(rank_of(x), [] {}).get();
      }
    }
  }

  outcome node_value(u64 x) {
    return outcome_of([&] {
      if constexpr (Real) {
        return sojourn::activate(node<true>, x, depth_ - 1, oldest_);
      } else {
        return node<false>(x, depth_ - 1, oldest_);
      }
    });
  }

  /// The value of a computation below this, where there may be one.
  u64 node_or(u64 x, u64 otherwise) { return depth_ == 0 ? otherwise : node_value(x).value; }

  void activate(u64 x) {
    if (depth_ == 0) return;
    if (x % 4 != 0) return add(node_value(x).value);
    // Captures: this activation stays, what it calls may move.
    auto body = [this, x] {
      total_ += x >> 4;
      const u64 v = node_value(x).value;
      total_ += x >> 5;
      return v;
    };
    if constexpr (Real) {
      add(sojourn::activate(body));
    } else {
      add(body());
    }
  }

  /// A whole program in a handler of another rank.
  void remote_node(u64 x) {
    if (depth_ == 0) return;
    add(outcome_of([&] {
          if constexpr (Real) {
            return sojourn::rpc(rank_of(x), node<true>, x, depth_ - 1, sojourn::activation{}).get();
          } else {
            return node<false>(x, depth_ - 1, {});
          }
        }).value);
  }

  void large_result(u64 x) {
    if (depth_ == 0) return;
    many_words m;
    if constexpr (Real) {
      m = sojourn::activate(many_words_of<true>, x, depth_ - 1, oldest_);
    } else {
      m = many_words_of<false>(x, depth_ - 1, oldest_);
    }
    for (u64 word : m) add(word);
  }

  void call_object(u64 x) {
    const int owner = rank_of(x);
    const bool deep = depth_ > 0 && x % 4 == 2;
    add(outcome_of([&] {
          if constexpr (Real) {
            const auto p = cells[static_cast<std::size_t>(owner)];
            const sojourn::via how =
                x / 4 % 2 == 0 ? sojourn::via::rpc : some_migration(x / 8, oldest_);
            const int before = sojourn::rank_me();
            const u64 v = deep ? p.template call<&cell::work_deep>(how, x, depth_ - 1)
                               : p.template call<&cell::work>(how, x);
            if (!others_move_threads() && sojourn::rank_me() != before &&
                sojourn::rank_me() != owner) {
              fail(seed_, "a call of an object on rank %d ended on rank %d", owner,
                   sojourn::rank_me());
            }
            return v;
          } else {
            return deep ? work_deep_of(owner, x, depth_ - 1) : work_of(owner, x);
          }
        }).value);
  }

  // Children --------------------------------------------------------------------------------------

  child<Real>* free_child() {
    for (auto& c : children_) {
      if (!c.active()) return &c;
    }
    return nullptr;
  }

  void fork(u64 x) {
    child<Real>* c = free_child();
    if (depth_ == 0 || c == nullptr) return;
    c->fork(node<Real>, x, depth_ - 1, sojourn::activation{});
  }

  /// A child that the future of a call stands for.
  void start_remote(u64 x) {
    child<Real>* c = free_child();
    if (c == nullptr) return;
    const int owner = rank_of(x);
    if constexpr (Real) {
      c->start([&] {
        if (x % 2 == 0) return sojourn::rpc(owner, remote_function<true>, x);
        return cells[static_cast<std::size_t>(owner)].template async<&cell::work>(x);
      });
    } else {
      c->start([&] { return x % 2 == 0 ? remote_function<false>(x) : work_of(owner, x); });
    }
  }

  void then(u64 x) { children_[x % children_.size()].then_hash(); }

  void join(child<Real>& c) { add(c.join().value); }

  void join_any(u64 x) {
    u64 active = 0;
    for (auto& c : children_) active += c.active();
    if (active == 0) return;
    u64 nth = x % active;
    for (auto& c : children_) {
      if (c.active() && nth-- == 0) return join(c);
    }
  }

  void fork_shared(u64 x) {
    if (shared_count_ == shared_.size()) return;
    auto& c = shared_[shared_count_++];
    c.frame = shared_with(x);
    start_by_reference(c);
    total_ += x >> 6;
  }

  shared_frame shared_with(u64 seed) {
    return {array_, count_, seed_, &total_, nullptr, seed, depth_ > 0 ? depth_ - 1 : 0, {}};
  }

  void join_shared() { sum_ = join_by_reference(shared_[--shared_count_], sum_); }

  // Migration -------------------------------------------------------------------------------------

  void migrate([[maybe_unused]] u64 x) {
    if constexpr (Real) {
      const int to = rank_of(x);
      const int from = sojourn::rank_me();
      if (to == from) return;
      bool shared_unfinished = false;
      for (u64 i = 0; i < shared_count_; ++i) shared_unfinished |= shared_[i].running.unfinished();
      bool children_unfinished = false;
      for (auto& c : children_) children_unfinished |= c.unfinished();
      const bool moved = sojourn::migrate_to(to, some_migration(x, oldest_));
      if (sojourn::rank_me() != (moved ? to : from)) fail(seed_, "migrate_to says where it is not");
      if (!moved) {
        happened(event::refused);
        if (shared_unfinished) happened(event::refused_by_reference);
        return;
      }
      if (shared_unfinished && watch_rules())
        fail(seed_, "a frame moved although a child refers to it");
      happened(event::moved);
      if (children_unfinished) happened(event::moved_with_children);
      if (to == began_on_) happened(event::moved_back);
    }
  }

  /// Attempts a migration that the gate must refuse.
  void expect_refusal([[maybe_unused]] u64 x, [[maybe_unused]] event e) {
    if constexpr (Real) {
      const int to = other_rank_of(x);
      const int from = sojourn::rank_me();
      if (to == from) return;
      const bool moved = sojourn::migrate_to(to, some_migration(x, oldest_));
      if (moved && watch_rules()) fail(seed_, "a frame moved that must stay");
      if (!moved && sojourn::rank_me() != from) fail(seed_, "a refused migration moved");
      happened(e);
    }
  }

  void stay(u64 x) {
    sojourn::stay here;
    expect_refusal(x, event::refused_by_stay);
    if (depth_ > 0 && x % 2 == 0) add(node_value(x).value);
    expect_refusal(x, event::refused_by_stay);
  }

  void finish(u64 x) {
    if (depth_ == 0) return;
    auto body = [&] {
      add(node_value(x).value);
      if (x % 4 == 0) throw_one(x);
    };
    if constexpr (Real) {
      const u64 call = ++one_way_calls;
      outcome o = outcome_of([&] {
        sojourn::finish([&] {
          sojourn::rpc_ff(
              rank_of(x),
              [](u64 y, int home, u64 number) {
                (void)remote_function<true>(y & ~u64{15});
                // At the end of what the scope waits for, by a call that it waits for, too.
                sojourn::yield();
                sojourn::rpc_ff(home, [](u64 n) { one_way_calls_ended.insert(n); }, number);
              },
              x, sojourn::rank_me(), call);
          body();
        });
        return u64{0};
      });
      if (one_way_calls_ended.erase(call) != 1)
        fail(seed_, "finish returned before a call in it had ended");
      add(o.value);
      happened(event::finished_scope);
    } else {
      add(outcome_of([&] {
            body();
            return u64{0};
          }).value);
    }
  }

  /// The rounding mode belongs to the fiber.
  void rounding(u64 x) {
    if constexpr (Real) {
      const int mode = x % 2 == 0 ? FE_UPWARD : FE_TOWARDZERO;
      std::fesetround(mode);
      wait(x / 2);
      if (x % 3 == 0) migrate(x / 2);
      if (std::fegetround() != mode) fail(seed_, "a wait changed the rounding mode");
      std::fesetround(FE_TONEAREST);
    }
  }

  u64 seed_;
  u64 depth_;
  sojourn::activation oldest_;
  volatile u64* array_;
  u64 count_;
  random_numbers random_;
  u64 sum_;
  int began_on_;
  u64 total_ = 0;  ///< Added to by this and its by-reference children, in any order.
  std::array<child<Real>, 4> children_;
  std::array<by_reference_child<Real>, 2> shared_;
  u64 shared_count_ = 0;
};

template <bool Real>
[[gnu::noinline]] u64 node(u64 seed, u64 depth, sojourn::activation oldest) {
  const u64 count = 2 + hash(seed + 1) % (seed % 16 == 3 ? 600 : 40);
  auto* array = static_cast<volatile u64*>(alloca(count * sizeof(u64)));
  alignas(32) volatile double vector[4] = {1, 2, 3, 4};
  computation<Real> c(seed, depth, oldest, array, count);
  const u64 value = c.run();
  for (int i = 0; i < 4; ++i) {
    if (vector[i] != i + 1) fail(seed, "a floating-point local changed");
  }
  return value;
}

}  // namespace cut_rules
