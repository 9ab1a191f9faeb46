// SPDX-License-Identifier: Apache-2.0
// Tries things in a child process that may fail, crash or hang, and says how it went.
#pragma once

#include <functional>
#include <string>

namespace sojourn::detail {

struct trial {
  bool started = false;  ///< False: no process could be started, and `reason` says why.
  std::string reason;    ///< Empty when the attempt works.
  std::string note;      ///< What the attempt has learnt, when it works.

  bool works() const { return started && reason.empty(); }
};

/// What an attempt returns from its process.
struct attempt_result {
  std::string reason;
  std::string note;
};

/// Runs `attempt` in a process group of its own, for some seconds at most. When this returns, no
/// process of the group is left. An exception that leaves `attempt` is the reason of its failure.
trial try_in_child(const std::function<attempt_result()>& attempt);

/// "NAME: text of errno", for an attempt whose call NAME has failed.
attempt_result failed(const std::string& call);

/// Forks. The child runs `body` and ends. If the attempt hangs, the child does not outlive it.
/// Returns -1 as fork() does.
int fork_helper(const std::function<void()>& body);

}  // namespace sojourn::detail
