// SPDX-License-Identifier: Apache-2.0
// What the floors above do for remote calls.
#pragma once

namespace sojourn::detail {

/// Members are null when nothing is to be done.
struct rpc_hooks {
  /// Called once, at the end of this rank's next barrier of all ranks; then reset to null.
  /// (checkpoint)
  void (*after_next_barrier)() = nullptr;
};
extern rpc_hooks on_rpc;

}  // namespace sojourn::detail
