// SPDX-License-Identifier: Apache-2.0
// A job that ends badly in the way its argument says. deaths.sh reads what is said then.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sojourn/sojourn.hpp"

namespace deaths {

using namespace sojourn;

// Tells the compiler nothing of how deep a recursion goes.
volatile int depth_wanted = 1 << 30;

/// Uses `Bytes` of stack a call and touches one of them, at the end that is reached last: only
/// probes of each page on the way find the guard.
template <int Bytes>
[[gnu::noinline]] int recursion(int depth) {
  volatile char frame[Bytes];
  frame[0] = static_cast<char>(depth);
  if (depth >= depth_wanted) return 0;
  return recursion<Bytes>(depth + 1) + frame[0];
}

[[gnu::noinline]] int one_large_frame(std::size_t bytes) {
  auto* frame = static_cast<volatile char*>(__builtin_alloca(bytes));
  frame[0] = 1;
  return frame[0];
}

[[gnu::noinline]] void throws() { throw std::logic_error("out of a noexcept function"); }
void quiet() noexcept { throws(); }

[[gnu::noinline]] void aborts() { std::abort(); }

/// Parts of this process's memory, and whether a core holds them.
struct mapping {
  std::uint64_t from;
  std::uint64_t to;
  bool of_job;  ///< Shared memory of the runtime.
  bool in_core;
};
std::vector<mapping> mappings() {
  std::vector<mapping> all;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      all.push_back({from, to, line.find("/memfd:sojourn") != std::string::npos, true});
    } else if (line.starts_with("VmFlags:")) {
      all.back().in_core = line.find(" dd") == std::string::npos;
    }
  }
  return all;
}

/// A core of this rank holds its objects, not those of others, and little else that is shared.
int cores() {
  constexpr std::size_t count = 10, bytes = 4u << 20;
  std::vector<std::uint64_t> mine;
  for (std::size_t i = 0; i < count; ++i) mine.push_back(make_array<char>(0, bytes).address());
  const std::uint64_t other = make<long>(rank_count() - 1).address();
  std::uint64_t of_job = 0;
  for (const mapping& m : mappings()) {
    if (m.of_job && m.in_core) of_job += m.to - m.from;
    for (const std::uint64_t object : mine) {
      for (const std::uint64_t byte : {object, object + bytes - 1}) {
        if (m.from <= byte && byte < m.to && !m.in_core) return 3;
      }
    }
    if (rank_count() > 1 && m.from <= other && other < m.to && m.in_core && m.of_job) return 4;
  }
  return of_job >= count * bytes && of_job < 2 * count * bytes ? 0 : 5;
}

int die(std::string_view how) {
  if (how == "cores") return cores();
  rank_t victim = rank_count() - 1;
  if (how == "recursion") return rpc(victim, [] { return recursion<64>(0); }).get();
  if (how == "frames_16k") return rpc(victim, [] { return recursion<16 << 10>(0); }).get();
  if (how == "one_large_frame") {
    return rpc(victim, [] { return one_large_frame(std::size_t{3} << 20); }).get();
  }
  if (how == "recursion_main") return recursion<64>(0);
  if (how == "recursion_elsewhere") {
    // In an activation that has come from another rank, on its stack.
    return rpc(
               0,
               [](rank_t to) {
                 return activate(
                     [](rank_t there) {
                       migrate_to(there);
                       return recursion<64>(0);
                     },
                     to);
               },
               victim)
        .get();
  }
  if (how == "throw") throw std::runtime_error("thrown on purpose");
  if (how == "throw_int") throw 5;
  if (how == "rpc_ff") rpc_ff(victim, [] { throw std::runtime_error("nobody waits"); });
  if (how == "rpc_ff_int") rpc_ff(victim, [] { throw 5; });
  if (how == "terminate") rpc(victim, [] { std::terminate(); }).get();
  if (how == "noexcept") rpc(victim, [] { quiet(); }).get();
  if (how == "abort") rpc(victim, aborts).get();
  if (how == "exit") rpc(victim, [] { std::_Exit(9); }).get();
  if (how == "status") return rank_me() == 0 ? 7 : 0;
  if (how == "stack_of_caller") {
    // A pointer to a frame of this rank, followed on another.
    int local = 3;
    return rpc(
               victim,
               [](std::uint64_t address) { return *reinterpret_cast<volatile int*>(address); },
               reinterpret_cast<std::uint64_t>(&local))
        .get();
  }
  if (how == "heap_of_another") {
    auto p = make<int>(victim, 5);
    return *reinterpret_cast<volatile int*>(p.address());
  }
  return 0;
}

}  // namespace deaths

int main(int argc, char** argv) {
  std::string_view how = argc > 1 ? argv[1] : "well";
  return sojourn::run(argc, argv, [how] {
    sojourn::barrier();
    int status = sojourn::rank_me() == 0 ? deaths::die(how) : 0;
    sojourn::barrier();
    return status;
  });
}
