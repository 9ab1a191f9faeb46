// SPDX-License-Identifier: Apache-2.0
// EM3D in three structures of communication and synchronisation, with a child for each node.
// Source: Plevyak, Karamcheti, Zhang and Chien, §4.3.3.
#pragma once

#include <string>

#include "common/execution_meter.hpp"
#include "em3d/kernel/graph.hpp"

namespace apps::em3d_flow {

/// The same on every rank.
struct result {
  executions measured;
  std::string fault;  ///< What differs from one loop's values; empty when nothing does.
};

/// Each node reads the values that it depends on. Collective. Suspends.
result run_pull(const em3d::settings& chosen);

/// Each node writes its value to all that depend on it. Collective. Suspends.
result run_push(const em3d::settings& chosen);

/// One message with a node's value goes through all that depend on it; the last one tells the node.
/// Collective. Suspends.
result run_forward(const em3d::settings& chosen);

}  // namespace apps::em3d_flow
