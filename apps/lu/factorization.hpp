// SPDX-License-Identifier: Apache-2.0
// LU factorization of a dense matrix in blocks, without pivoting. In each step the pivot block is
// factored by its owner; the owners of blocks in its row or column get it and solve these; and the
// owners of the blocks beyond those get them and update their own. Source: MRPC §5.5; SPLASH-2.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>

#include "common/split_meter.hpp"
#include "lu/kernel/check.hpp"
#include "lu/kernel/part.hpp"

namespace apps::lu {

enum class form {
  rpc,        ///< Blocks are arguments of calls, or their results; ranks wait for blocks.
  one_sided,  ///< Blocks are put and got; barriers tell that they are there.
};
inline const char* name_of(form f) { return f == form::rpc ? "rpc" : "onesided"; }

/// Of the blocks of row and column k. The pivot block is always sent.
enum class exchange {
  send,   ///< Each is sent to those that need it as soon as it is solved.
  fetch,  ///< Who needs them fetches all before updating, as in the paper.
};
inline const char* name_of(exchange e) { return e == exchange::send ? "send" : "fetch"; }

struct settings {
  layout shape;  ///< Requires: no fault(), for as many processors as the job has ranks.
  form how = form::rpc;
  exchange by = exchange::send;
  std::uint64_t seed = 1;
  int repeats = 1;
};

/// The same on every rank, but for the residual.
struct result {
  double seconds = 0;  ///< Of the repeat in the middle, as everything below.
  double fastest = 0;
  time_split split{};
  sojourn::counters spent;
  residual found{};  ///< On rank 0; of the last repeat.
};

/// Collective. Suspends.
result factorize(const settings& chosen);

}  // namespace apps::lu
