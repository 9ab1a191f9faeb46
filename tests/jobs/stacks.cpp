// SPDX-License-Identifier: Apache-2.0
// Stacks as long as they were asked for: deep recursion in main and in a fiber, and a thread that
// moves with megabytes of frames. The argument says what is done; stacks.sh sets the sizes.
#include <sojourn/sojourn.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "check.hpp"

namespace stacks {

using sojourn::rank_count;
using sojourn::rank_me;

constexpr long mib = 1 << 20;
constexpr long frame_bytes = 64 << 10;
constexpr long words_a_page = 4096 / sizeof(long);

/// Frames of some 64 KiB, of whose pages each has a word that is compared on the way back. At the
/// bottom the thread goes to `to`, when that is a rank. Returns where it has been.
[[gnu::noinline]] int descend(long bytes, int to) {
  volatile long words[frame_bytes / sizeof(long)];
  for (long i = 0; i < frame_bytes / 4096; ++i) words[i * words_a_page] = bytes + i;
  int where = rank_me();
  if (bytes > frame_bytes) {
    where = descend(bytes - frame_bytes, to);
  } else if (to >= 0) {
    sojourn::migrate(sojourn::self(), to);
    where = rank_me();
  }
  for (long i = 0; i < frame_bytes / 4096; ++i) CHECK(words[i * words_a_page] == bytes + i);
  return where;
}

void move_deep(int to) {
  CHECK(descend(20 * mib, to) == to);
  CHECK(rank_me() == to);
}

/// What the system says of the mapping that `address` lies in, in a line that begins with `what`.
std::string of_mapping(std::uintptr_t address, const std::string& what) {
  std::ifstream maps("/proc/self/smaps");
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long from = 0;
    unsigned long long to = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &from, &to) == 2) {
      is_it = from <= address && address < to;
    } else if (is_it && line.rfind(what, 0) == 0) {
      return line.substr(what.size());
    }
  }
  return "";
}

/// Called where little of the stack is in use.
void is_only_reserved() {
  const int here = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(&here);
  const std::string resident = of_mapping(address, "Rss:");
  const std::string flags = of_mapping(address, "VmFlags:");
  if (resident.empty() || flags.empty()) return;  // an emulator
  CHECK(std::atol(resident.c_str()) < 8 * 1024);
  int overcommit = 0;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> overcommit;
  if (overcommit != 2) CHECK((flags + " ").find(" nr ") != std::string::npos);
}

int test(const std::string& how) {
  const int last = rank_count() - 1;
  if (how == "main") {
    is_only_reserved();
    if (rank_me() == 0) CHECK(descend(200 * mib, -1) == 0);
  } else if (how == "fiber") {
    if (rank_me() == 0) {
      sojourn::rpc(last, [] { is_only_reserved(); }).get();
      CHECK(sojourn::rpc(last, descend, 200 * mib, -1).get() == last);
    }
  } else if (how == "thread") {
    if (rank_me() == 0) sojourn::spawn(move_deep, last).join();
  } else if (how == "many") {
    // More than there are slots for, all of which wait.
    if (rank_me() == 0) {
      sojourn::finish([last] {
        for (int i = 0; i < 100; ++i)
          sojourn::rpc_ff(last, [] { sojourn::sleep_for(std::chrono::milliseconds(20)); });
      });
    }
  }
  sojourn::barrier();
  return check::verdict();
}

}  // namespace stacks

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  return sojourn::run(argc, argv, [how] { return stacks::test(how); });
}
