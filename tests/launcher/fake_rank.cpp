// SPDX-License-Identifier: Apache-2.0
// A rank that only pretends: it writes into the job's segment what a rank of the runtime would, so
// that the launcher is tested apart from the runtime, deaths included that the runtime never dies.
//
// fake_rank WORD…: each word is done in turn.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "job/segment.hpp"

using namespace sojourn::detail;

namespace fake {

int rank() { return std::atoi(std::getenv(rank_variable)); }

job_segment& job() {
  static job_segment* segment = [] {
    int fd = std::atoi(std::getenv(job_fds_variable));
    struct stat status{};
    if (fstat(fd, &status) != 0) std::abort();
    void* at = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) std::abort();
    return static_cast<job_segment*>(at);
  }();
  if (segment->magic != job_segment_magic) std::abort();
  return *segment;
}
rank_block& own_block() { return job().ranks[rank()]; }

[[gnu::noinline]] void inner_function() { std::fflush(stdout); }
[[gnu::noinline]] void outer_function(int) { inner_function(); }

/// Writes a crash record as a rank's signal handler does.
void write_record(int signal, const char* message) {
  crash_record& crash = own_block().crash;
  crash.order.store(job().deaths_begun.fetch_add(1) + 1);
  crash.signal = signal;
  crash.address = 0xdead0;
  crash.frames[0] = reinterpret_cast<std::uint64_t>(&inner_function);
  crash.frames[1] = reinterpret_cast<std::uint64_t>(&outer_function) + 1;
  crash.frames[2] = 0x10;
  crash.frame_count = 3;
  std::snprintf(crash.message, sizeof crash.message, "%s", message);
  crash.written.store(1, std::memory_order_release);
}

[[noreturn]] void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::abort();
}

void print_job() {
  std::printf("rank=%d ranks=%u share=%u cores=%u bound=%u\n", rank(), job().rank_count,
              job().share_heap, job().cores, job().bound);
}

/// Has whoever opens the file wait, an exec too, as a file system may that does not answer: until
/// this process ends, or the kernel's patience (/proc/sys/fs/lease-break-time).
void lease(const char* path) {
  std::signal(SIGIO, SIG_IGN);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
    std::perror("fake_rank: lease");
    _exit(99);
  }
}

/// Does one word; those that begin with "N:" only on rank N.
void act(std::string word) {
  std::size_t colon = word.find(':');
  if (colon != std::string::npos) {
    if (std::atoi(word.c_str()) != rank()) return;
    word.erase(0, colon + 1);
  }
  std::size_t equals = word.find('=');
  std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  word.resize(std::min(equals, word.size()));
  int number = std::atoi(value.c_str());

  if (word == "join") {
    own_block().pid = getpid();
    own_block().state = rank_state::attached;
  } else if (word == "finish") {
    own_block().state = rank_state::finished;
  } else if (word == "count") {
    const_cast<counts_page&>(job().counts_of(rank())).requests_sent =
        static_cast<std::uint64_t>(number) + static_cast<unsigned>(rank());
  } else if (word == "sleep_ms") {
    std::fflush(stdout);
    usleep(static_cast<useconds_t>(number) * 1000);
  } else if (word == "print") {
    std::printf("%s\n", value.c_str());
  } else if (word == "complain") {
    std::fprintf(stderr, "%s\n", value.c_str());
  } else if (word == "job") {
    print_job();
  } else if (word == "record") {
    write_record(number, "it \x01 failed on purpose\n");
  } else if (word == "full_record") {
    write_record(number, std::string(2000, 'x').c_str());
    own_block().crash.frame_count = 0xffffffff;
  } else if (word == "die") {
    std::fflush(stdout);
    die_of(number);
  } else if (word == "lease") {
    lease(value.c_str());
  } else if (word == "ignore_term") {
    std::signal(SIGTERM, SIG_IGN);
  } else if (word == "exit") {
    std::fflush(stdout);
    _exit(number);
  } else {
    std::fprintf(stderr, "fake_rank: what is '%s'?\n", word.c_str());
    _exit(99);
  }
}

}  // namespace fake

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) fake::act(argv[i]);
  return 0;
}
