// SPDX-License-Identifier: Apache-2.0
// A discrete Fourier transform by all ranks: steps on a cyclic layout, a re-mapping in which each
// rank sends a chunk to each other one, steps on the blocked layout. Two forms differ in how a
// chunk gets to its place. Source: MRPC §5.4.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>

#include "common/split_meter.hpp"
#include "fft/kernel/check.hpp"
#include "fft/kernel/part.hpp"

namespace apps::fft {

enum class form {
  rpc,        ///< A chunk is the argument of calls at its destination, which copy it into place.
  one_sided,  ///< A chunk is put into place; a barrier tells that all are.
};
inline const char* name_of(form f) { return f == form::rpc ? "rpc" : "onesided"; }

struct settings {
  layout shape;  ///< Requires: no fault(), for as many processors as the job has ranks.
  form how = form::rpc;
  std::uint64_t seed = 1;
  int repeats = 1;
};

/// The same on every rank, but for what is wrong.
struct result {
  double seconds = 0;  ///< Of the repeat in the middle, as everything below.
  double fastest = 0;
  time_split split{};
  sojourn::counters spent;
  errors found{};  ///< On rank 0; of the last repeat.
};

/// Collective. Suspends.
result transform(const settings& chosen);

}  // namespace apps::fft
