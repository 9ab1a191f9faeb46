// SPDX-License-Identifier: Apache-2.0
// What comes out of a computation: a value or an exception, in the real evaluation by a future, in
// the serial one at once.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "settings.hpp"

namespace cut_rules {

/// Registered, so that it arrives as itself.
struct program_error {
  u64 code;
};

[[noreturn]] inline void throw_one(u64 x) {
  switch (x % 4) {
    case 0:
      throw static_cast<int>(x & 0xffff);
    case 1:
      throw program_error{x};
    case 2:
      throw std::out_of_range("code " + std::to_string(x % 10000));
    default:
      throw static_cast<short>(x & 0xff);
  }
}

struct outcome {
  u64 value;
  bool threw;
};

/// Nothing waits in these catch blocks: what the program threw ends here.
template <class F>
outcome outcome_of(F&& f) {
  try {
    return {f(), false};
  } catch (int code) {
    return {hash(static_cast<u64>(code) + 77), true};
  } catch (short code) {
    return {hash(static_cast<u64>(code) + 78), true};
  } catch (const program_error& e) {
    return {hash(e.code + 79), true};
  } catch (const std::out_of_range& e) {
    u64 sum = 80;
    for (const char* c = e.what(); *c != 0; ++c) sum = sum * 31 + static_cast<unsigned char>(*c);
    return {hash(sum), true};
  } catch (const std::exception& e) {
    fail(0, "an exception that no program throws: %s", e.what());
  }
}

/// A child of a computation, started and not yet joined.
template <bool Real>
class child;

template <>
class child<false> {
 public:
  template <class F, class... A>
  void fork(F fn, A... arguments) {
    result_ = outcome_of([&] { return fn(arguments...); });
    active_ = true;
  }
  template <class F>
  void fork_here(F fn) {
    fork(fn);
  }
  /// Of something that the real evaluation starts otherwise.
  template <class F>
  void start(F value_of) {
    fork(value_of);
  }
  void then_hash() {
    if (!result_.threw) result_.value = hash(result_.value + 5);
  }
  outcome join() {
    active_ = false;
    return result_;
  }
  bool active() const { return active_; }
  void drop() { active_ = false; }

 private:
  outcome result_{};
  bool active_ = false;
};

template <>
class child<true> {
 public:
  template <class F, class... A>
  void fork(F fn, A... arguments) {
    start([&] { return sojourn::fork(fn, arguments...); });
    happened(result_.ready() ? event::fork_returned : event::fork_went_on);
  }
  /// `fn` refers to frames of its caller.
  template <class F>
  void fork_here(F fn) {
    start([&] { return sojourn::fork(fn); });
    happened(result_.ready() ? event::fork_returned : event::fork_by_reference_went_on);
  }
  template <class F>
  void start(F future_of) {
    result_ = future_of();
    made_on_ = sojourn::rank_me();
  }
  void then_hash() {
    if (result_.valid()) {
      result_ = std::move(result_).then([](u64 v) { return hash(v + 5); });
      made_on_ = sojourn::rank_me();
    }
  }
  outcome join() {
    if (made_on_ != sojourn::rank_me()) happened(event::joined_away);
    bool by_ticket = !result_.ready();
    outcome o = outcome_of([&] { return result_.get(); });
    if (o.threw && by_ticket) happened(event::exception_by_ticket);
    return o;
  }
  bool active() const { return result_.valid(); }
  /// False when it cannot be known, away from where it was made.
  bool unfinished() const {
    return result_.valid() && made_on_ == sojourn::rank_me() && !result_.ready();
  }
  void drop() { result_ = {}; }

 private:
  sojourn::future<u64> result_;
  int made_on_ = 0;
};

}  // namespace cut_rules
