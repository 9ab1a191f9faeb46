// SPDX-License-Identifier: Apache-2.0
#include "counting_network/shared_network.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

namespace apps {

namespace {

/// Of each stage, the balancer that a wire goes through.
constexpr auto balancer_of_wire = [] {
  std::array<std::array<std::size_t, wiring::width>, wiring::stage_count> all{};
  for (std::size_t s = 0; s < all.size(); ++s) {
    const wiring::stage& stage = bitonic.stages()[s];
    for (std::size_t j = 0; j < wiring::per_stage; ++j) {
      all[s][static_cast<std::size_t>(stage.joints[j].top)] = j;
      all[s][static_cast<std::size_t>(stage.joints[j].bottom)] = j;
    }
  }
  return all;
}();

}  // namespace

shared_network shared_network::create() {
  shared_network network;
  // Zeros are a network from which nobody has drawn.
  network.pages_ = static_cast<pages*>(sojourn::shared::allocate(sizeof(pages), alignof(pages)));
  return network;
}

void shared_network::destroy() const { sojourn::shared::free(pages_.get()); }

std::uint64_t shared_network::take(int wire) const {
  wire %= wiring::width;
  for (std::size_t s = 0; s < wiring::stage_count; ++s) {
    const std::size_t j = balancer_of_wire[s][static_cast<std::size_t>(wire)];
    shared_balancer& at = pages_->balancers[s][j];
    const std::lock_guard lock(at.mutex);
    const bool bottom = std::exchange(at.bottom_next, !at.bottom_next);
    const wiring::joint& joint = bitonic.stages()[s].joints[j];
    wire = bottom ? joint.bottom : joint.top;
  }
  const auto& outputs = bitonic.outputs();
  const auto end = static_cast<std::size_t>(std::ranges::find(outputs, wire) - outputs.begin());
  shared_counter& counter = pages_->counters[end];
  const std::lock_guard lock(counter.mutex);
  return end + wiring::width * counter.taken++;
}

std::array<std::uint64_t, wiring::width> shared_network::counts() const {
  std::array<std::uint64_t, wiring::width> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::lock_guard lock(pages_->counters[i].mutex);
    all[i] = pages_->counters[i].taken;
  }
  return all;
}

}  // namespace apps
