// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sojourn::detail {

/// What a suspended computation is told when it goes on. Its value is the word that a switch of
/// stacks hands over.
enum class resumed : long {
  not_yet = 0,  ///< It is not ready.
  /// Its next statement is correct on any rank: it gave its turn, or looks again for the result
  /// that it waited for. A computation that is told anything else runs here before it may leave.
  anywhere = 1,
  there = 2,     ///< It has moved to the rank it asked for.
  stayed = 3,    ///< It asked to move, and has not.
  here = 4,      ///< What it waited for, only this rank can provide.
  by_timer = 5,  ///< Its time has come.
};

}  // namespace sojourn::detail
