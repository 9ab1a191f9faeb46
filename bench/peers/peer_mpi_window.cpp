// SPDX-License-Identifier: Apache-2.0
//
// One-sided access to an MPI window in shared memory (MPI_Win_allocate, with `--mca osc sm`),
// from rank 0 to rank 1, all in one passive epoch:
//
//   window_put         MPI_Put of `bytes` bytes, complete there: MPI_Win_flush
//   window_get         MPI_Get, likewise
//   window_fetch_add   MPI_Fetch_and_op of a word
//   window_put_signal  a put, a flush and a put of a word that the other rank sees, which answers
//                      in the same way: half of there and back
//
// All that was written and read is checked. Between two commands every rank sleeps in read() on its
// own FIFO.

#define OMPI_SKIP_MPICXX 1  // The C API alone: the C++ bindings are gone from MPI 3 on.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "common/command_channel.hpp"
#include "common/payload.hpp"

namespace {

constexpr std::size_t bytes_max = std::size_t{1} << 20;

int me = 0;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "peer_mpi_window: rank %d: %s\n", me, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// A rank's part of the window: a signal, a counter, and bytes.
struct part {
  alignas(64) std::uint64_t signal;
  alignas(64) std::uint64_t counter;
  alignas(64) unsigned char bytes[bytes_max];
};

class window {
 public:
  window() {
    MPI_Win_allocate(sizeof(part), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine_, &window_);
    std::memset(static_cast<void*>(mine_), 0, sizeof(part));
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  part& mine() { return *mine_; }
  void put(const void* from, std::size_t bytes, std::size_t at) {
    const int count = static_cast<int>(bytes);
    MPI_Put(from, count, MPI_BYTE, 1 - me, static_cast<MPI_Aint>(at), count, MPI_BYTE, window_);
    MPI_Win_flush(1 - me, window_);
  }
  void get(void* to, std::size_t bytes, std::size_t at) {
    const int count = static_cast<int>(bytes);
    MPI_Get(to, count, MPI_BYTE, 1 - me, static_cast<MPI_Aint>(at), count, MPI_BYTE, window_);
    MPI_Win_flush(1 - me, window_);
  }
  std::uint64_t fetch_add(std::uint64_t value) {
    std::uint64_t before = 0;
    MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, 1 - me, offsetof(part, counter), MPI_SUM,
                     window_);
    MPI_Win_flush(1 - me, window_);
    return before;
  }
  void wait_for_signal(std::uint64_t value) {
    const std::atomic_ref<std::uint64_t> signal(mine_->signal);
    while (signal.load(std::memory_order_acquire) != value) {
    }
  }

 private:
  part* mine_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

std::vector<double> put_and_signal(window& w, const bench::batch_plan& plan) {
  std::vector<char> out = bench::payload_of(plan.bytes, me);
  std::vector<char> in(plan.bytes);
  w.mine().signal = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  std::uint64_t number = 0;
  const auto send = [&] {
    bench::number_payload(out, number);
    w.put(out.data(), out.size(), offsetof(part, bytes));
    w.put(&number, sizeof number, offsetof(part, signal));
  };
  const auto receive = [&] {
    w.wait_for_signal(number);
    std::memcpy(in.data(), w.mine().bytes, in.size());
    if (!bench::has_number(in, number)) fail("a signal came before what it signals");
  };
  auto both = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      ++number;
      if (me == 0) send();
      receive();
      if (me == 1) send();
    }
  });
  if (!bench::is_payload_of(in, 1 - me)) fail("bytes arrived changed");
  for (double& nanoseconds : both) nanoseconds /= 2;
  return both;
}

std::optional<std::vector<double>> measure(window& w, const bench::command& next) {
  const bench::batch_plan& plan = next.plan;
  if (plan.bytes > bytes_max) return std::nullopt;
  if (next.operation == "window_put_signal") return put_and_signal(w, plan);
  const bool puts = next.operation == "window_put";
  const bool gets = next.operation == "window_get";
  if (!puts && !gets && next.operation != "window_fetch_add") return std::nullopt;
  bench::fill_payload(w.mine().bytes, plan.bytes, me);
  w.mine().counter = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<double> found{0.0};
  if (me == 0) {
    std::vector<char> buffer = bench::payload_of(plan.bytes, me);
    std::uint64_t number = 0;
    found = bench::time_batches(plan, [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i, ++number) {
        bench::touch(buffer.data());
        if (puts) w.put(buffer.data(), buffer.size(), offsetof(part, bytes));
        if (gets) w.get(buffer.data(), buffer.size(), offsetof(part, bytes));
        if (!puts && !gets && w.fetch_add(1) != number) fail("a sum is wrong");
      }
    });
    if (gets && !bench::is_payload_of(buffer, 1)) fail("bytes were read changed");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 1 && puts && !bench::is_payload(w.mine().bytes, plan.bytes, 0)) {
    fail("bytes were written changed");
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bench::process_options options = bench::parse_options(argc, argv, "window_put");
  if (ranks != 2 || options.cpus.size() < 2) {
    if (me == 0) std::fprintf(stderr, "peer_mpi_window: needs 2 ranks and 2 cores\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (!bench::pin_to_cpu(options.cpus[static_cast<std::size_t>(me)])) {
    std::perror("peer_mpi_window: cannot pin to the core given with --cpus");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int status = 0;
  {
    window w;
    if (options.commands.empty()) {
      const auto found = measure(w, {options.operation, options.plan});
      if (!found) {
        if (me == 0) std::fprintf(stderr, "peer_mpi_window: there is no such operation or size\n");
        status = 2;
      } else if (me == 0) {
        bench::print_samples("mpi", options, *found);
      }
    } else {
      bench::command_channel channel(options, me);
      while (const auto next = channel.next()) {
        const auto found = measure(w, *next);
        if (me != 0) continue;
        if (found)
          channel.answer(*found);
        else
          channel.refuse("peer_mpi_window does not know this operation or size");
      }
    }
  }
  MPI_Finalize();
  return status;
}
