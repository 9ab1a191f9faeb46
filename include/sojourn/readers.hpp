// SPDX-License-Identifier: Apache-2.0
// Readers that give each rank its part of a text file: docs/containers.md. They are written on the
// public interface alone, as a program could write its own.
#pragma once

#include "sojourn/readers/csv.hpp"
#include "sojourn/readers/lines.hpp"
#include "sojourn/readers/sequences.hpp"
