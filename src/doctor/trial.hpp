// SPDX-License-Identifier: Apache-2.0
// Tries in a child process what may fail, crash or hang, and says how it went.
#pragma once

#include <functional>
#include <string>

namespace sojourn::detail {

struct trial {
  bool started = false;  ///< False: no process could be had for it, and `reason` says why.
  std::string reason;    ///< Empty when it works.
  std::string note;      ///< What it learnt, when it works.

  bool works() const { return started && reason.empty(); }
};

/// What an attempt gives back from its process.
struct attempt_result {
  std::string reason;
  std::string note;
};

/// Runs `attempt` in a process group of its own, at most for some seconds; nothing of the group is
/// left on return. An exception that leaves it is a reason.
trial try_in_child(const std::function<attempt_result()>& attempt);

/// "NAME: text of errno", for an attempt whose call NAME has failed.
attempt_result failed(const std::string& call);

/// Forks. The child runs `body` and ends, and does not outlive an attempt that hangs; -1 as fork().
int fork_helper(const std::function<void()>& body);

}  // namespace sojourn::detail
