// SPDX-License-Identifier: Apache-2.0
// Data structures that are dealt out over ranks: docs/containers.md. They are written on the public
// interface alone, as a program could write its own.
#pragma once

#include "sojourn/containers/dist_bag.hpp"
#include "sojourn/containers/dist_counter.hpp"
#include "sojourn/containers/dist_disjoint_set.hpp"
#include "sojourn/containers/dist_graph.hpp"
#include "sojourn/containers/dist_map.hpp"
#include "sojourn/containers/dist_vector.hpp"
#include "sojourn/containers/trail.hpp"
