// SPDX-License-Identifier: Apache-2.0
// The steps of a computation that wait while an exception is in flight: in catch blocks, and in
// destructors that run because of one.
#pragma once

#include <exception>
#include <stdexcept>

#include "computation.hpp"

namespace cut_rules {

template <bool Real>
class exception_steps {
 public:
  explicit exception_steps(computation<Real>& c) : c_(c) {}

  void in_a_handler(u64 x) {
    try {
      try {
        throw program_error{x};
      } catch (const program_error& e) {
        for (u64 i = 0; i < 2; ++i) {
          wait_somehow(x >> (5 * i), hash(x + i), event::waited_in_handler,
                       event::refused_in_handler);
          if (e.code != x) fail(c_.seed_, "the exception in a handler changed while it waited");
          if (Real && std::current_exception() == nullptr) {
            fail(c_.seed_, "the exception in a handler is gone");
          }
        }
        c_.add(e.code);
        if (x & 0x10000) throw;
        if (x & 0x20000) throw std::out_of_range("thrown by a handler");
      }
    } catch (const program_error& e) {
      if (e.code != x) fail(c_.seed_, "a rethrown exception changed");
      c_.add(e.code + 1);
    } catch (const std::out_of_range& e) {
      c_.add(static_cast<u64>(e.what()[10]) + 2);
    }
  }

  void in_unwinding(u64 x) {
    c_.add(outcome_of([&] {
             at_exit first(*this, hash(x));
             at_exit second(*this, x);
             c_.fork(hash(x + 1));
             if (x & 0x3000) throw_one(x >> 20);
             return x;
           }).value);
  }

 private:
  void wait_somehow(u64 op, u64 x, event waited, event refused) {
    switch (op % 8) {
      case 0:
        c_.remote_call(x);
        break;
      case 1:
        c_.wait(x);
        break;
      case 2:
        return c_.expect_refusal(x, refused);
      case 3:
      case 4:
        c_.activate(x);
        break;
      case 5:
        fork_and_join(x, refused);
        break;
      case 6:
        fork_by_reference_and_join(x);
        break;
      default:
        c_.join_any(x);
    }
    happened(waited);
    c_.check();
  }

  void fork_and_join(u64 x, event refused) {
    if (c_.depth_ == 0) return;
    child<Real> c;
    c.fork(node<Real>, x, c_.depth_ - 1, sojourn::activation{});
    c_.check();
    c_.wait(x);
    c_.check();
    c_.expect_refusal(x, refused);
    c_.join(c);
  }

  void fork_by_reference_and_join(u64 x) {
    by_reference_child<Real> c;
    c.frame = c_.shared_with(x);
    start_by_reference(c);
    c_.check();
    c_.total_ += x >> 7;
    c_.wait(x);
    c_.sum_ = join_by_reference(c, c_.sum_);
  }

  /// Waits in its destructor.
  class at_exit {
   public:
    at_exit(exception_steps& s, u64 x)
        : steps_(s), x_(x), thrown_before_(std::uncaught_exceptions()) {}
    ~at_exit() {
      const int thrown = std::uncaught_exceptions();
      if (thrown > thrown_before_) {
        steps_.wait_somehow(x_, hash(x_), event::waited_in_unwinding, event::refused_in_unwinding);
      } else {
        steps_.c_.remote_call(x_);
      }
      if (std::uncaught_exceptions() != thrown) {
        fail(steps_.c_.seed_, "the exceptions being thrown changed in a destructor");
      }
    }
    at_exit(const at_exit&) = delete;
    at_exit& operator=(const at_exit&) = delete;

   private:
    exception_steps& steps_;
    u64 x_;
    int thrown_before_;
  };

  computation<Real>& c_;
};

}  // namespace cut_rules
