// SPDX-License-Identifier: Apache-2.0
// Waiting for everything that was started, wherever it went.
//
// Returns when all calls that were begun inside have run (docs/examples/aggregation.cpp):
//
//     finish([&] {
//       aggregated here;
//       for (unsigned i = 0; i < 100'000; ++i) {
//         const unsigned value = i * 2654435761u >> 8;
//         rpc_ff(static_cast<rank_t>(value % ranks), count, value / ranks % 1000);
//       }
//     });
#pragma once

#include <exception>

#include "sojourn/detail/running.hpp"

namespace sojourn {

namespace detail {

/// An open finish; lies in the frame that called it, which stays on its rank meanwhile.
struct finish_frame : hold {
  void* scope;
};
void finish_begin(finish_frame& frame);
/// Waits; rethrows `failure`, else the first exception that an rpc_ff inside ended with.
void finish_end(finish_frame& frame, const std::exception_ptr& failure);

}  // namespace detail

/// Calls body() and returns when it and every rpc, rpc_ff, async, then, fork and spawn started
/// inside it, and by those in turn, on every rank, has finished. Then rethrows what body() threw,
/// else the first exception that left an rpc_ff inside. Calls of finish nest. It does not wait for
/// collective operations that were begun inside (collectives.hpp), which end when other ranks do
/// their part: these have futures. Suspends. The frames that call it stay on their rank while it is
/// open.
template <class Body>
void finish(Body&& body) {
  detail::finish_frame frame;
  detail::finish_begin(frame);
  std::exception_ptr failure;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
  detail::finish_end(frame, failure);
}

}  // namespace sojourn
