// SPDX-License-Identifier: Apache-2.0
// What the three water programs have in common beside their physics: what comes out of them, and
// the loop that checks it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nine/kernel/machine.hpp"
#include "nine/kernel/water_physics.hpp"

namespace apps::nine::water {

struct results {
  std::vector<sites> positions;   ///< By number of the molecule; after the last step.
  std::vector<sites> velocities;  ///< The same.
  std::vector<energies> history;  ///< At the start and after each step.
};

class program : public application {
 public:
  explicit program(const input& in) : in_(in) {}

  /// The results, from shared memory.
  virtual results gather() const = 0;

  std::string check() const final;
  double checksum() const final;

 protected:
  const input in_;
};

/// The whole simulation by one loop over all pairs of molecules.
results simulate_alone(const input& in);
/// Empty, or in a sentence where `found` differs from what was `wanted` by more than rounding.
std::string difference(const input& in, const results& found, const results& wanted);

std::unique_ptr<program> make_water_nsq(const input& in);
/// The two that divide the cube into cells need three cells along a side at least.
std::unique_ptr<program> make_spatial(const input& in);
std::unique_ptr<program> make_spatial_local(const input& in);

}  // namespace apps::nine::water
