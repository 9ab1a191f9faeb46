// SPDX-License-Identifier: Apache-2.0
// The name of nonblocking.hpp until version 0.2.
#pragma once

#include "sojourn/calls/nonblocking.hpp"
