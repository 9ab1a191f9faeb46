// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sojourn::detail {

/// What a suspended computation is told when it goes on. Its value is the word that a switch of
/// stacks hands over.
enum class resumed : long {
  not_yet = 0,  ///< It waits still: nobody has made it ready.
  /// Its next statement is correct on any rank: it gave its turn, or looks again for the result
  /// that it waited for. A computation that is told anything else runs here before it may leave.
  anywhere = 1,
  there = 2,     ///< It has moved to the rank it asked for.
  stayed = 3,    ///< It asked to move, and has not.
  here = 4,      ///< It has what it waited for, which only this rank can provide.
  by_timer = 5,  ///< The time has come at which its wait was to end.
};

}  // namespace sojourn::detail
