// SPDX-License-Identifier: Apache-2.0
#include "transport/neighbours.hpp"

namespace sojourn::detail {

namespace {

const neighbours* attached = nullptr;

}  // namespace

const neighbours& near_ranks() { return *attached; }
void attach_neighbours(const neighbours& all) { attached = &all; }

}  // namespace sojourn::detail
