// SPDX-License-Identifier: Apache-2.0
//
// What MPI costs on many ranks. With more ranks than cores OpenMPI yields the core while it waits
// when it knows that it is oversubscribed (mpirun --oversubscribe); ranks are then left to the
// kernel's placement, as Sojourn's are. With --cpus as many as ranks, each is pinned to its own.
//
//   barrier     one MPI_Barrier over all ranks
//   broadcast   one MPI_Bcast of `bytes` bytes; the root goes round, so that no rank runs ahead
//   reduce      one MPI_Allreduce: the sum of `bytes` / 8 numbers
//   pairs       round trip of `bytes` bytes between ranks 2i and 2i+1, all pairs at once: of the
//               slowest pair
//   corner      round trip between ranks 0 and 1, while the others sleep in read()
//   load.W      round trips of `bytes` bytes from rank 0 to rank 1, W under way at any time: the
//               50th, 99th and 99.9th percentile
//   memory      bytes of memory of a rank, its share of what ranks share included: the mean
//
// All payloads are checked. Between two commands every rank sleeps in read() on its own FIFO.

#define OMPI_SKIP_MPICXX 1  // The C API alone: the C++ bindings are gone from MPI 3 on.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/command_channel.hpp"
#include "common/payload.hpp"
#include "common/percentiles.hpp"
#include "common/resident.hpp"

namespace {

int me = 0;
int ranks = 0;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "peer_mpi_scale: rank %d: %s\n", me, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

std::vector<double> barriers(const bench::batch_plan& plan) {
  return bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) MPI_Barrier(MPI_COMM_WORLD);
  });
}

std::vector<double> broadcasts(const bench::batch_plan& plan) {
  std::vector<std::uint64_t> values(std::max<std::size_t>(plan.bytes / 8, 1));
  std::uint64_t round = 0;
  return bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++round) {
      const int root = static_cast<int>(round % static_cast<std::uint64_t>(ranks));
      if (root == me) values.front() = values.back() = round;
      MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_UINT64_T, root, MPI_COMM_WORLD);
      if (values.front() != round || values.back() != round) fail("a wrong value was broadcast");
    }
  });
}

std::vector<double> reductions(const bench::batch_plan& plan) {
  std::vector<std::uint64_t> mine(std::max<std::size_t>(plan.bytes / 8, 1));
  std::vector<std::uint64_t> sums(mine.size());
  const auto n = static_cast<std::uint64_t>(ranks);
  std::uint64_t round = 0;
  return bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++round) {
      std::fill(mine.begin(), mine.end(), round + static_cast<std::uint64_t>(me));
      MPI_Allreduce(mine.data(), sums.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM,
                    MPI_COMM_WORLD);
      if (sums.back() != n * round + n * (n - 1) / 2) fail("a sum is wrong");
    }
  });
}

/// Round trips between this rank and `other`; the one with the even number begins.
void ping_pong(int other, std::uint64_t count, std::vector<char>& out, std::vector<char>& in) {
  const int bytes = static_cast<int>(out.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    bench::number_payload(out, i);
    if (me % 2 == 0) MPI_Send(out.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    MPI_Recv(in.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me % 2 == 1) MPI_Send(out.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    if (!bench::has_number(in, i)) fail("another message arrived than was sent");
  }
}

std::vector<double> round_trips_with(int other, const bench::batch_plan& plan) {
  std::vector<char> out = bench::payload_of(plan.bytes, me);
  std::vector<char> in(out.size());
  auto found =
      bench::time_batches(plan, [&](std::uint64_t count) { ping_pong(other, count, out, in); });
  if (!bench::is_payload_of(in, other)) fail("a message arrived changed");
  return found;
}

/// Of each batch the slowest pair's.
std::vector<double> pairs(const bench::batch_plan& plan) {
  MPI_Barrier(MPI_COMM_WORLD);
  const int other = me ^ 1;
  std::vector<double> mine =
      other < ranks ? round_trips_with(other, plan) : std::vector<double>(plan.repeats, 0.0);
  std::vector<double> slowest(mine.size());
  MPI_Reduce(mine.data(), slowest.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, 0,
             MPI_COMM_WORLD);
  return slowest;
}

constexpr int tag_end = 1'000'000;

/// Rank 1 sends back what arrives, until the message that says so.
void answer_all(std::size_t bytes) {
  std::vector<char> in(std::max<std::size_t>(bytes, 1));
  std::vector<char> out = bench::payload_of(bytes, me);
  for (;;) {
    MPI_Status status;
    MPI_Recv(in.data(), static_cast<int>(in.size()), MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD,
             &status);
    if (status.MPI_TAG == tag_end) break;
    std::memcpy(out.data(), in.data(), std::min(in.size(), sizeof(std::uint64_t)));
    MPI_Send(out.data(), static_cast<int>(bytes), MPI_BYTE, 0, status.MPI_TAG, MPI_COMM_WORLD);
  }
}

/// Rank 0 keeps so many requests under way, and begins the next of a slot when its answer is here.
std::vector<double> under_load(std::size_t width, const bench::batch_plan& plan) {
  const int bytes = static_cast<int>(plan.bytes);
  std::vector<std::vector<char>> out(width);
  std::vector<std::vector<char>> in(width);
  std::vector<MPI_Request> answers(width, MPI_REQUEST_NULL);
  std::vector<std::uint64_t> begun_ns(width);
  std::vector<std::uint64_t> numbers(width);
  std::uint64_t next = 0;
  const auto begin = [&](std::size_t slot) {
    bench::number_payload(out[slot], next);
    numbers[slot] = next++;
    const int tag = static_cast<int>(slot);
    MPI_Irecv(in[slot].data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &answers[slot]);
    begun_ns[slot] = bench::clock_ns();
    MPI_Send(out[slot].data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
  };
  for (std::size_t slot = 0; slot < width; ++slot) {
    out[slot] = bench::payload_of(plan.bytes, me);
    in[slot] = std::vector<char>(plan.bytes);
  }
  const std::uint64_t warm = plan.warm_up();
  const std::uint64_t all = warm + plan.iterations * plan.repeats;
  std::vector<double> latencies;
  latencies.reserve(all - warm);
  for (std::size_t slot = 0; slot < width; ++slot) begin(slot);
  for (std::uint64_t done = 0; done < all; ++done) {
    int slot = 0;
    MPI_Waitany(static_cast<int>(width), answers.data(), &slot, MPI_STATUS_IGNORE);
    const auto at = static_cast<std::size_t>(slot);
    if (done >= warm) latencies.push_back(static_cast<double>(bench::clock_ns() - begun_ns[at]));
    if (!bench::has_number(in[at], numbers[at])) fail("another answer arrived than was asked for");
    if (all - done > width) begin(at);
  }
  MPI_Send(nullptr, 0, MPI_BYTE, 1, tag_end, MPI_COMM_WORLD);
  for (const auto& each : in) {
    if (!bench::is_payload_of(each, 1)) fail("an answer arrived changed");
  }
  return bench::percentiles(std::move(latencies));
}

std::vector<double> memory() {
  MPI_Barrier(MPI_COMM_WORLD);
  const double mine = bench::proportional_bytes();
  double all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  return {all / ranks};
}

std::optional<std::vector<double>> measure(const bench::command& next) {
  const std::string_view operation = next.operation;
  if (operation == "barrier") return barriers(next.plan);
  if (operation == "broadcast") return broadcasts(next.plan);
  if (operation == "reduce") return reductions(next.plan);
  if (operation == "pairs") return pairs(next.plan);
  if (operation == "memory") return memory();
  if (operation == "corner" && ranks > 1) {
    return me < 2 ? round_trips_with(1 - me, next.plan) : std::vector{0.0};
  }
  if (operation.starts_with("load.") && ranks > 1) {
    const int width = std::atoi(next.operation.c_str() + 5);
    if (width < 1 || width >= tag_end) return std::nullopt;
    if (me == 1) answer_all(next.plan.bytes);
    return me == 0 ? under_load(static_cast<std::size_t>(width), next.plan) : std::vector{0.0};
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bench::process_options options = bench::parse_options(argc, argv, "barrier");
  if (options.cpus.size() == static_cast<std::size_t>(ranks) && options.cpus_given &&
      !bench::pin_to_cpu(options.cpus[static_cast<std::size_t>(me)])) {
    std::perror("peer_mpi_scale: cannot pin to the core given with --cpus");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int status = 0;
  if (options.commands.empty()) {
    const auto found = measure({options.operation, options.plan});
    if (!found) {
      if (me == 0) std::fprintf(stderr, "peer_mpi_scale: no such operation on so many ranks\n");
      status = 2;
    } else if (me == 0) {
      bench::print_samples("mpi", options, *found);
    }
  } else {
    bench::command_channel channel(options, me);
    while (const auto next = channel.next()) {
      const auto found = measure(*next);
      if (me != 0) continue;
      if (found)
        channel.answer(*found);
      else
        channel.refuse("peer_mpi_scale does not know this operation");
    }
  }
  MPI_Finalize();
  return status;
}
