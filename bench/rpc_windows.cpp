// SPDX-License-Identifier: Apache-2.0
//
// bench_rpc: one-sided access, as peer_mpi_window has it, to a part that each rank shows the other.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/payload.hpp"
#include "rpc_parts.hpp"

namespace bench {

namespace {

using namespace sojourn;

constexpr std::size_t window_bytes_least = std::size_t{1} << 20;
constexpr std::size_t window_bytes_max = std::size_t{64} << 20;

/// A rank's part: a signal and a counter, and bytes beside them.
struct window_part {
  alignas(64) global_atomic<std::uint64_t> signal;
  alignas(64) global_atomic<std::uint64_t> counter;
};
struct window_places {
  global_ptr<window_part> part;
  global_ptr<std::byte> bytes;
  global_ptr<global_atomic<std::uint64_t>> signal, counter;
};
/// Both ranks' parts, on both ranks, with so many bytes; and the bytes of the user.
std::array<window_places, 2> places_of_windows;
std::size_t window_bytes = 0;
std::vector<std::byte> window_buffer;

void make_windows(std::size_t bytes) {
  const auto make_here = [](std::size_t room) {
    const auto part = make<window_part>(rank_me());
    return window_places{part, make_array<std::byte>(rank_me(), room),
                         global_ptr(&part.local()->signal), global_ptr(&part.local()->counter)};
  };
  places_of_windows = {make_here(bytes), rpc(1, make_here, bytes).get()};
  window_bytes = bytes;
  rpc(
      1, [](std::array<window_places, 2> both) { places_of_windows = both; }, places_of_windows)
      .get();
}

window_places& my_places() { return places_of_windows[static_cast<std::size_t>(rank_me())]; }
window_part& my_window() { return *my_places().part.local(); }
std::byte* my_window_bytes() { return my_places().bytes.local(); }

void prepare_window(std::size_t bytes) {
  window_buffer.assign(bytes, std::byte{0});
  bench::fill_payload(window_buffer.data(), bytes, rank_me());
  bench::fill_payload(my_window_bytes(), bytes, rank_me());
  my_window().signal.store(0);
  my_window().counter.store(0);
}

void put_and_signal(std::uint64_t number) {
  const window_places& to = places_of_windows[static_cast<std::size_t>(1 - rank_me())];
  bench::number_payload(window_buffer.data(), window_buffer.size(), number);
  put(std::span<const std::byte>(window_buffer), to.bytes);
  atomic_store(to.signal, number);
}
void take_signal(std::uint64_t number, std::vector<std::byte>& in) {
  // A rank that shares no memory must look for messages to be written to.
  constexpr int looks = 1000;
  for (int look = 0; my_window().signal.load() != number;) {
    if (++look % looks == 0) yield();
  }
  std::memcpy(in.data(), my_window_bytes(), in.size());
  if (!bench::has_number(in.data(), in.size(), number)) {
    throw std::runtime_error("a signal came before what it signals");
  }
}
/// This rank's part in so many signals there and back; rank 0 begins.
void exchange_signals(std::uint64_t first, std::uint64_t count) {
  std::vector<std::byte> in(window_buffer.size());
  for (std::uint64_t number = first; number < first + count; ++number) {
    if (rank_me() == 0) put_and_signal(number);
    take_signal(number, in);
    if (rank_me() == 1) put_and_signal(number);
  }
  require(bench::is_payload(in.data(), in.size(), 1 - rank_me()), "window_put_signal");
}

}  // namespace

figures time_window(std::string_view operation, const batch_plan& plan) {
  if (plan.bytes > window_bytes_max) return std::nullopt;
  if (window_bytes < plan.bytes || window_bytes == 0)
    make_windows(std::max<std::size_t>(plan.bytes, window_bytes_least));
  prepare_window(plan.bytes);
  rpc(1, prepare_window, plan.bytes).get();
  const window_places& there = places_of_windows[1];
  std::uint64_t number = 0;
  if (operation == "window_put_signal") {
    number = 1;
    auto both = bench::time_batches(plan, [&](std::uint64_t count) {
      auto other = rpc(1, exchange_signals, number, count);
      exchange_signals(number, count);
      number += count;
      other.get();
    });
    for (double& nanoseconds : both) nanoseconds /= 2;
    return both;
  }
  const auto time_each = [&](auto access) {
    return bench::time_batches(plan, [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i, ++number) {
        bench::touch(window_buffer.data());
        access();
      }
    });
  };
  std::vector<double> found;
  if (operation == "window_put") {
    found = time_each([&] { put(std::span<const std::byte>(window_buffer), there.bytes); });
    auto arrived = rpc(
        1, [](std::size_t n) { return bench::is_payload(my_window_bytes(), n, 0); }, plan.bytes);
    require(arrived.get(), operation);
  } else if (operation == "window_get") {
    found = time_each([&] { get(there.bytes, std::span<std::byte>(window_buffer)); });
    require(bench::is_payload(window_buffer.data(), plan.bytes, 1), operation);
  } else if (operation == "window_fetch_add") {
    found = time_each([&] { require(atomic_fetch_add(there.counter, 1) == number, operation); });
  } else {
    return std::nullopt;
  }
  return found;
}

}  // namespace bench
