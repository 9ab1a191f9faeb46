// SPDX-License-Identifier: Apache-2.0
//
// MPI's message cost between two ranks.
//
//   ping      round trip of `bytes` bytes each way by blocking send and receive, received in the
//             user's buffer
//   there     round trip of `bytes` bytes and an empty answer
//   rate      one message of `bytes` bytes, one way, of many: MPI_Isend and MPI_Irecv in windows of
//             64 with one MPI_Waitall each, and at the end one message back; stream.W: the same in
//             windows of W
//   packed    one item of 8 bytes, one way, of many: packed by hand into messages of `bytes` bytes,
//             of which a few are under way
//
// All payloads are checked. Between two commands every rank sleeps in read() on its own FIFO,
// because a rank that waited in MPI would spin on a core that is being measured.

#define OMPI_SKIP_MPICXX 1   // The C API alone: the C++ bindings are gone from MPI 3 on.
#define MPICH_SKIP_MPICXX 1  // Of MPICH's header, the same.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "common/command_channel.hpp"
#include "common/payload.hpp"

namespace {

int me = 0;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "peer_mpi_pingpong: rank %d: %s\n", me, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void send(const void* from, std::size_t bytes) {
  MPI_Send(from, static_cast<int>(bytes), MPI_BYTE, 1 - me, 0, MPI_COMM_WORLD);
}
void receive(void* to, std::size_t bytes) {
  MPI_Recv(to, static_cast<int>(bytes), MPI_BYTE, 1 - me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/// `back`: bytes of the answer.
std::vector<double> round_trips(const bench::batch_plan& plan, std::size_t back) {
  const std::size_t there = plan.bytes;
  const std::size_t mine = me == 0 ? there : back;
  const std::size_t theirs = me == 0 ? back : there;
  std::vector<char> out = bench::payload_of(std::max<std::size_t>(mine, 1), me);
  std::vector<char> in(std::max<std::size_t>(theirs, 1));
  std::uint64_t number = 0;
  auto found = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++number) {
      bench::number_payload(out.data(), mine, number);
      if (me == 0) send(out.data(), mine);
      receive(in.data(), theirs);
      if (me == 1) send(out.data(), mine);
      if (!bench::has_number(in.data(), theirs, number)) fail("another message came than was sent");
    }
  });
  if (!bench::is_payload(in.data(), theirs, 1 - me)) fail("a message arrived changed");
  return found;
}

/// After many messages one way: an empty one back.
void acknowledge() { me == 0 ? receive(nullptr, 0) : send(nullptr, 0); }

/// Each message of a window has a buffer of its own, as MPI requires of what is under way.
std::vector<double> stream(const bench::batch_plan& plan, std::size_t window) {
  const std::size_t bytes = plan.bytes;
  const int count = static_cast<int>(bytes);
  std::vector<std::vector<char>> buffers(window);
  for (auto& each : buffers) {
    each = me == 0 ? bench::payload_of(bytes, 0) : std::vector<char>(bytes);
  }
  std::vector<MPI_Request> requests(window);
  std::uint64_t number = 0;
  auto found = bench::time_batches(plan, [&](std::uint64_t messages) {
    for (std::uint64_t done = 0; done < messages;) {
      const std::size_t now = std::min<std::uint64_t>(window, messages - done);
      for (std::size_t i = 0; i < now; ++i) {
        char* const buffer = buffers[i].data();
        if (me == 0) {
          bench::number_payload(buffer, bytes, number + i);
          MPI_Isend(buffer, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        } else {
          MPI_Irecv(buffer, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
      }
      MPI_Waitall(static_cast<int>(now), requests.data(), MPI_STATUSES_IGNORE);
      for (std::size_t i = 0; i < now && me == 1; ++i) {
        if (!bench::has_number(buffers[i].data(), bytes, number + i)) {
          fail("another message came than was sent");
        }
      }
      done += now;
      number += now;
    }
    acknowledge();
  });
  // The last batch, and the warm-up, filled the first buffer at least.
  if (!bench::is_payload_of(buffers.front(), 0)) fail("a message arrived changed");
  return found;
}

constexpr std::size_t bundles = 8;

std::uint64_t sum_of(const std::uint64_t* first, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += first[i];
  return sum;
}

/// Buffers in turn: one is filled or read while the others are under way.
std::vector<double> packed(const bench::batch_plan& plan) {
  const std::size_t most = std::max<std::size_t>(plan.bytes / sizeof(std::uint64_t), 1);
  std::array<std::vector<std::uint64_t>, bundles> buffers;
  for (auto& each : buffers) each.resize(most);
  std::array<MPI_Request, bundles> requests;
  requests.fill(MPI_REQUEST_NULL);
  const auto bundle_of = [most](std::uint64_t items, std::uint64_t number) {
    return std::min<std::uint64_t>(most, items - number * most);
  };
  return bench::time_batches(plan, [&](std::uint64_t items) {
    const std::uint64_t messages = (items + most - 1) / most;
    std::uint64_t sum = 0;
    const auto begin_receive = [&](std::uint64_t number) {
      MPI_Irecv(buffers[number % bundles].data(), static_cast<int>(most), MPI_UINT64_T, 0, 0,
                MPI_COMM_WORLD, &requests[number % bundles]);
    };
    for (std::uint64_t n = 0; me == 1 && n < std::min<std::uint64_t>(bundles, messages); ++n) {
      begin_receive(n);
    }
    for (std::uint64_t n = 0; n < messages; ++n) {
      const std::size_t now = bundle_of(items, n);
      std::uint64_t* const items_here = buffers[n % bundles].data();
      MPI_Wait(&requests[n % bundles], MPI_STATUS_IGNORE);
      if (me == 0) {
        for (std::size_t i = 0; i < now; ++i) {
          items_here[i] = n * most + i;
          bench::touch(items_here + i);
        }
        MPI_Isend(items_here, static_cast<int>(now), MPI_UINT64_T, 1, 0, MPI_COMM_WORLD,
                  &requests[n % bundles]);
      } else {
        sum += sum_of(items_here, now);
        if (n + bundles < messages) begin_receive(n + bundles);
      }
    }
    MPI_Waitall(static_cast<int>(bundles), requests.data(), MPI_STATUSES_IGNORE);
    if (me == 1 && sum != items * (items - 1) / 2) fail("the items do not add up");
    acknowledge();
  });
}

std::optional<std::vector<double>> measure(const bench::command& next) {
  const std::string_view operation = next.operation;
  MPI_Barrier(MPI_COMM_WORLD);
  if (operation == "ping") return round_trips(next.plan, next.plan.bytes);
  if (operation == "there") return round_trips(next.plan, 0);
  if (operation == "rate") return stream(next.plan, 64);
  if (operation == "packed") return packed(next.plan);
  if (operation.starts_with("stream.")) {
    const int window = std::atoi(next.operation.c_str() + 7);
    if (window > 0) return stream(next.plan, static_cast<std::size_t>(window));
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bench::process_options options = bench::parse_options(argc, argv, "ping");
  if (ranks != 2 || options.cpus.size() < 2) {
    if (me == 0) std::fprintf(stderr, "peer_mpi_pingpong: needs 2 ranks and 2 cores\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (!bench::pin_to_cpu(options.cpus[static_cast<std::size_t>(me)])) {
    std::perror("peer_mpi_pingpong: cannot pin to the core given with --cpus");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int status = 0;
  if (options.commands.empty()) {
    const auto found = measure({options.operation, options.plan});
    if (!found) {
      if (me == 0) std::fprintf(stderr, "peer_mpi_pingpong: there is no such operation\n");
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
        channel.refuse("peer_mpi_pingpong does not know this operation");
    }
  }
  MPI_Finalize();
  return status;
}
