// SPDX-License-Identifier: Apache-2.0
// The makers of the applications. The table in applications.cpp says what their inputs are.
#pragma once

#include <memory>

#include "nine/kernel/machine.hpp"

namespace apps::nine {

std::unique_ptr<application> make_barnes(problem_size size);
std::unique_ptr<application> make_adi(problem_size size);
std::unique_ptr<application> make_fft3d(problem_size size);
std::unique_ptr<application> make_ocean(problem_size size);
std::unique_ptr<application> make_spatial_local(problem_size size);
std::unique_ptr<application> make_sor(problem_size size);
std::unique_ptr<application> make_swm(problem_size size);
std::unique_ptr<application> make_water_nsq(problem_size size);
std::unique_ptr<application> make_spatial(problem_size size);

}  // namespace apps::nine
