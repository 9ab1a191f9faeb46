// SPDX-License-Identifier: Apache-2.0
//
// The hardware's own cost: two pinned processes and shared memory, without any runtime.
//
//   line   round trip of one cache line each way that holds the flag and 56 bytes
//   ring   one way, half a round trip, of `bytes` bytes copied into and out of shared memory in
//          whole lines, the flag in the message's first line; one slot for each way, used again
//          and again, as a ring that is empty can begin again
//
// Both copy from one user's buffer into another's.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <new>

#include "common/command_channel.hpp"

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t ring_lines = (std::size_t{16} << 10) / line_bytes;
constexpr std::size_t flag_bytes = sizeof(std::uint64_t);
constexpr std::size_t message_bytes_max = ring_lines * line_bytes;

using flag = std::atomic<std::uint64_t>;

struct alignas(line_bytes) line {
  flag sequence;
  unsigned char data[line_bytes - flag_bytes];
};

struct ring {
  line lines[ring_lines];
};

constexpr std::size_t lines_of(std::size_t bytes) {
  return (flag_bytes + bytes + line_bytes - 1) / line_bytes;
}

/// Copies whole lines, all but the first one's flag. A plain memcpy beside the flag straddles lines
/// with most of its accesses, which makes some sizes half as slow again.
void copy_lines(line* to, const line* from, std::size_t count) {
  std::memcpy(to->data, from->data, sizeof from->data);
  for (std::size_t i = 1; i < count; ++i)
    std::memcpy(static_cast<void*>(to + i), static_cast<const void*>(from + i), line_bytes);
}

/// What the two processes share: element i is where side i receives.
struct shared_state {
  line lines[2];
  ring rings[2];
};

/// One process's view: where it sends, where it receives, and the buffers of its user.
struct side {
  shared_state* shared;
  int me;
  alignas(line_bytes) unsigned char out[message_bytes_max];
  alignas(line_bytes) unsigned char in[message_bytes_max];
  std::uint64_t line_sequence = 0;
  std::uint64_t ring_sequence = 0;

  void send_line() {
    line& to = shared->lines[1 - me];
    bench::touch(out);
    std::memcpy(to.data, out, sizeof to.data);
    to.sequence.store(line_sequence, std::memory_order_release);
  }
  void receive_line() {
    line& from = shared->lines[me];
    while (from.sequence.load(std::memory_order_acquire) != line_sequence) {
    }
    std::memcpy(in, from.data, sizeof from.data);
    bench::touch(in);
  }

  /// The next message takes the place of the last one, which has been answered.
  void send_ring(std::size_t lines) {
    line* to = shared->rings[1 - me].lines;
    bench::touch(out);
    copy_lines(to, reinterpret_cast<const line*>(out), lines);
    to->sequence.store(ring_sequence, std::memory_order_release);
  }
  void receive_ring(std::size_t lines) {
    const line* from = shared->rings[me].lines;
    while (from->sequence.load(std::memory_order_acquire) != ring_sequence) {
    }
    copy_lines(reinterpret_cast<line*>(in), from, lines);
    bench::touch(in);
  }
};

void ping_pong_line(side& self, std::uint64_t round_trips) {
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    ++self.line_sequence;
    if (self.me == 0) self.send_line();
    self.receive_line();
    if (self.me == 1) self.send_line();
  }
}

void ping_pong_ring(side& self, std::uint64_t round_trips, std::size_t lines) {
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    ++self.ring_sequence;
    if (self.me == 0) self.send_ring(lines);
    self.receive_ring(lines);
    if (self.me == 1) self.send_ring(lines);
  }
}

/// Clears what a batch with another slot size left, so that no old byte looks like a flag.
void clear_rings(side& self) {
  std::memset(static_cast<void*>(&self.shared->rings[self.me]), 0, sizeof(ring));
}

std::vector<double> measure(side& self, const bench::command& what) {
  if (what.operation == "line")
    return bench::time_batches(what.plan,
                               [&](std::uint64_t count) { ping_pong_line(self, count); });
  const std::size_t lines = lines_of(what.plan.bytes);
  auto one_way = bench::time_batches(
      what.plan, [&](std::uint64_t count) { ping_pong_ring(self, count, lines); });
  for (double& nanoseconds : one_way) nanoseconds /= 2;
  return one_way;
}

/// The pipes that wake the other side for a batch and tell when both have cleared their rings.
struct wake_up {
  int to_other[2];
  int to_first[2];
};

struct wire_command {
  char operation[16];
  bench::batch_plan plan;
};

bool read_all(int fd, void* data, std::size_t bytes) {
  return read(fd, data, bytes) == static_cast<ssize_t>(bytes);
}

void echo(side& self, const wake_up& pipes) {
  wire_command next;
  while (read_all(pipes.to_other[0], &next, sizeof next)) {
    clear_rings(self);
    const char cleared = 1;
    if (write(pipes.to_first[1], &cleared, 1) != 1) return;
    measure(self, {next.operation, next.plan});
  }
}

std::vector<double> measure_with_other(side& self, const wake_up& pipes,
                                       const bench::command& what) {
  wire_command message{};
  std::strncpy(message.operation, what.operation.c_str(), sizeof message.operation - 1);
  message.plan = what.plan;
  clear_rings(self);
  char cleared = 0;
  if (write(pipes.to_other[1], &message, sizeof message) != sizeof message ||
      !read_all(pipes.to_first[0], &cleared, 1)) {
    std::perror("peer_raw: the other process is gone");
    std::exit(1);
  }
  return measure(self, what);
}

bool is_known(const bench::command& what) {
  return what.operation == "line" ||
         (what.operation == "ring" && what.plan.bytes <= message_bytes_max - flag_bytes);
}

int lead(side& self, const wake_up& pipes, const bench::process_options& options) {
  if (options.commands.empty()) {
    const bench::command once{options.operation, options.plan};
    if (!is_known(once)) {
      std::fprintf(stderr, "peer_raw: no operation %s of %llu bytes (line, ring)\n",
                   options.operation.c_str(), static_cast<unsigned long long>(options.plan.bytes));
      return 2;
    }
    bench::print_samples("raw", options, measure_with_other(self, pipes, once));
    return 0;
  }
  bench::command_channel channel(options, 0);
  while (auto next = channel.next()) {
    if (is_known(*next))
      channel.answer(measure_with_other(self, pipes, *next));
    else
      channel.refuse("peer_raw knows line and ring, up to 16 KiB");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "line");
  void* memory = mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  wake_up pipes;
  if (memory == MAP_FAILED || options.cpus.size() < 2 || pipe(pipes.to_other) != 0 ||
      pipe(pipes.to_first) != 0) {
    std::perror("peer_raw: cannot set up two processes");
    return 2;
  }
  static side self;
  self.shared = new (memory) shared_state;

  const pid_t other = fork();
  self.me = other == 0 ? 1 : 0;
  if (!bench::pin_to_cpu(options.cpus[static_cast<std::size_t>(self.me)])) {
    std::perror("peer_raw: cannot pin to the core given with --cpus");
    return 2;
  }
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pipes.to_other[1]);
    close(pipes.to_first[0]);
    echo(self, pipes);
    _exit(0);
  }
  close(pipes.to_other[0]);
  close(pipes.to_first[1]);
  const int status = lead(self, pipes, options);
  close(pipes.to_other[1]);
  waitpid(other, nullptr, 0);
  return status;
}
