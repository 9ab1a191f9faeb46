// SPDX-License-Identifier: Apache-2.0
// One rank's part in a collective operation, step by step. A step never waits: it stops at the
// first contribution that has not come. So the same steps serve a fiber that waits in the
// operation, and operations in which no fiber waits.
#pragma once

#include <exception>

#include "message/dispatcher.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/collective_tree.hpp"

namespace sojourn::detail {

class collective_steps {
 public:
  collective_steps(const collective_plan& plan, collective_values& values, open_collective& open);

  /// Does what can be done now. Returns true when this rank's part is done, and false when the
  /// contribution of the rank open.missing has not come. Runs the operations on values, which may
  /// suspend.
  bool advance();
  /// The exception that ended the operation, here or on another rank; null: it went well. Valid
  /// once advance() has returned true.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  enum class phase : std::uint8_t { children, root, parent, spread, meet, exchange, done };

  bool meets();
  bool exchanges();
  bool takes(int member, value_bytes& bytes);
  void send(int member);
  void send_up(int member);
  void fail(const std::exception_ptr& failure);
  template <class Do>
  void guarded(Do what);
  int real(int place) const;

  collective_plan plan_;
  collective_values& values_;
  open_collective& open_;
  int count_;
  int place_;  ///< This rank's place in the tree, whose top is place 0.
  phase phase_ = phase::done;
  children_in_tree child_;
  meeting meeting_;
  int step_ = 1;  ///< The step of an exchange.
  bool sent_ = false;
  std::exception_ptr failure_;
  value_bytes failure_bytes_;  ///< The failure as bytes, as other ranks get it.
};

inline collective_steps::collective_steps(const collective_plan& plan, collective_values& values,
                                          open_collective& open)
    : plan_(plan), values_(values), open_(open), count_(open.among->count) {
  const int top = plan.shape == collective_shape::down ? plan.root : 0;
  place_ = around(open.among->me - top, count_);
  switch (plan.shape) {
    case collective_shape::meet:
      phase_ = wire().spins_for_replies() && job.near == job.count ? phase::meet : phase::children;
      break;
    case collective_shape::up_and_down:
    case collective_shape::up_to_root:
      phase_ = phase::children;
      break;
    case collective_shape::down:
      phase_ = place_ == 0 ? phase::spread : phase::parent;
      break;
    case collective_shape::exchange:
      phase_ = phase::exchange;
      break;
  }
}

}  // namespace sojourn::detail
