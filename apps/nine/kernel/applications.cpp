// SPDX-License-Identifier: Apache-2.0
// The table of the applications.
#include "nine/kernel/applications.hpp"

#include <algorithm>

namespace apps::nine {
namespace {

constexpr application_entry table[] = {
    {"barnes", "Gravity among particles, by an octree (Barnes and Hut)", "1,024 particles, 4 steps",
     "16,384 particles, 10 steps", make_barnes},
    {"adi", "Heat in a cube, tridiagonal equations along x, y and z in turn",
     "21 x 21 x 21, 10 steps", "125 x 125 x 125, 80 steps", make_adi},
    {"fft3d", "Diffusion in a cube by 3-D Fourier transforms with transposition",
     "16 x 16 x 16, 4 iterations", "64 x 64 x 64, 220 iterations", make_fft3d},
    {"ocean", "Wind-driven eddies and currents, red-black multigrid", "34 x 34, 10 steps",
     "258 x 258, 300 steps", make_ocean},
    {"spatial_local", "Water by cells; the molecules of a thread's cells lie together",
     "512 molecules, 20 steps", "4,096 molecules, 150 steps", make_spatial_local},
    {"sor", "Red-black successive over-relaxation", "128 x 128, 40 iterations",
     "2048 x 2048, 200 iterations", make_sor},
    {"swm", "Shallow-water equations by finite differences", "62 x 62, 20 steps",
     "750 x 750, 120 steps", make_swm},
    {"water_nsq", "Water, all pairs of molecules", "216 molecules, 20 steps",
     "512 molecules, 250 steps", make_water_nsq},
    {"spatial", "Water by cells, with lists of molecules", "512 molecules, 20 steps",
     "4,096 molecules, 150 steps", make_spatial},
};

}  // namespace

std::span<const application_entry> applications() { return table; }

const application_entry* find_application(std::string_view name) {
  const auto* const found = std::ranges::find(
      table, name, [](const application_entry& e) { return std::string_view(e.name); });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace apps::nine
