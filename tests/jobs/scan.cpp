// SPDX-License-Identifier: Apache-2.0
// Frames that migrate with a pointer into what stays behind, and frames that do not, as the
// argument says. scan.sh reads the warnings.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "sojourn/sojourn.hpp"

namespace walks {

using namespace sojourn;

struct cell {
  long value = 5;
  long get() const { return value; }
};

/// A buffer of this rank's heap lives across the migration, in a register or a frame.
[[gnu::noinline]] long keeps_a_buffer(rank_t there, rank_t home) {
  char* buffer = static_cast<char*>(std::malloc(1000));
  asm volatile("" : "+r"(buffer) : : "memory");
  std::strcpy(buffer, "home");
  migrate_to(there);
  long away = rank_me();
  migrate_to(home);
  long length = static_cast<long>(std::strlen(buffer));
  std::free(buffer);
  return away * 100 + length;
}

[[gnu::noinline]] long keeps_another(rank_t there, rank_t home) {
  long* numbers = static_cast<long*>(std::calloc(10, sizeof(long)));
  asm volatile("" : "+r"(numbers) : : "memory");
  migrate_to(there);
  migrate_to(home);
  long first = numbers[0];
  std::free(numbers);
  return first;
}

/// A pointer that is dead, to an object that is gone: nothing to report.
[[gnu::noinline]] long keeps_a_freed_one(rank_t there, rank_t home) {
  volatile std::uint64_t dead[2];
  long* numbers = static_cast<long*>(std::calloc(3, sizeof(long)));
  asm volatile("" : "+r"(numbers) : : "memory");
  dead[0] = reinterpret_cast<std::uint64_t>(numbers);
  dead[1] = dead[0];
  std::free(numbers);
  migrate_to(there);
  migrate_to(home);
  return dead[0] == dead[1] ? 1 : 0;
}

/// The buffer's address is in the frame of the function that migrates, and nowhere in its caller's.
[[gnu::noinline]] long keeps_it_in_its_frame(rank_t there, rank_t home) {
  char* volatile buffer = static_cast<char*>(std::malloc(1000));
  std::strcpy(buffer, "home");
  migrate_to(there);
  const long away = rank_me();
  migrate_to(home);
  const long length = static_cast<long>(std::strlen(buffer));
  std::free(buffer);
  return away * 100 + length;
}
[[gnu::noinline]] long calls_one_that_keeps_it(rank_t there, rank_t home) {
  return keeps_it_in_its_frame(there, home) + 1;
}

/// Fills a part of the stack with the address of an object of the program, and returns.
[[gnu::noinline]] void leaves_words(const void* object) {
  volatile std::uint64_t words[64];
  for (auto& word : words) word = reinterpret_cast<std::uint64_t>(object);
}
/// Its frame has these words where nothing has been written yet.
[[gnu::noinline]] long has_dead_words(rank_t there, rank_t home) {
  char room[400];
  asm volatile("" : : "r"(room) : "memory");
  migrate_to(there);
  long away = rank_me();
  migrate_to(home);
  asm volatile("" : : "r"(room) : "memory");
  return away;
}
[[gnu::noinline]] long runs_where_words_lie(rank_t there, rank_t home, const void* object) {
  leaves_words(object);
  return has_dead_words(there, home);
}

/// Another fiber moves it, so the frames leave while the scheduler runs.
[[gnu::noinline]] void keeps_it_while_it_is_moved(rank_t home) {
  char* volatile buffer = static_cast<char*>(std::malloc(1000));
  while (rank_me() == home) yield();
  migrate(self(), home);
  std::free(buffer);
}

/// Trivially copyable, so it compiles: the pointer inside is not seen by the type rules.
class hidden_pointer {
 public:
  hidden_pointer(const long* to, long n) : number(n), total_(to) {}
  long number;
  long there() const { return *total_; }

 private:
  const long* total_;
};
[[gnu::noinline]] long uses_a_callers_local(hidden_pointer p, rank_t there, rank_t home) {
  migrate_to(there);
  long n = p.number;
  migrate_to(home);
  return n;
}

/// Values alone, in frames of some size, and an access to an object.
[[gnu::noinline]] long carries_values(global_ptr<cell> c, rank_t home) {
  long numbers[20];
  for (long i = 0; i < 20; ++i) numbers[i] = i * i;
  inline_string<32> name = "a key";
  double third = 1.0 / 3;
  long sum = c.call<&cell::get>(via::migrate);
  migrate_to(home);
  for (long n : numbers) sum += n;
  return sum + static_cast<long>(name.size()) + static_cast<long>(third * 3);
}

[[gnu::noinline]] void leave_words_below(const void* word) {
  std::array<const void*, 64> words;
  words.fill(word);
  asm volatile("" : : "r"(words.data()) : "memory");
}
/// Its frame lies where those words are, and so do the arguments, which do not fill a word.
[[gnu::noinline]] bool short_arguments_move(rank_t there) {
  return activate([](rank_t to) { return migrate_to(to); }, there);
}
[[gnu::noinline]] bool nothing_but_a_lambda_moves() {
  return activate([] { return migrate_to(rank_me() + 1); });
}

int walk(std::string_view how) {
  rank_t there = rank_count() - 1;
  bool right = true;
  for (int i = 0; i < 20; ++i) {
    if (how == "buffer" || how == "both") {
      right &= activate(keeps_a_buffer, there, 0) == there * 100 + 4;
    }
    if (how == "both") right &= activate(keeps_another, there, 0) == 0;
    if (how == "callee") {
      right &= activate(calls_one_that_keeps_it, there, 0) == there * 100 + 5;
    }
    if (how == "dead") {
      static const auto* const object = new std::array<long, 10>();
      auto address = reinterpret_cast<std::uint64_t>(object);
      right &=
          activate(
              [](std::uint64_t disguised, rank_t to, rank_t from) {
                return runs_where_words_lie(to, from, reinterpret_cast<const void*>(~disguised));
              },
              ~address, there, 0) == there;
      right &= counters_now().scan_warnings == 0;
    }
    if (how == "thread") {
      thread moved = spawn(keeps_it_while_it_is_moved, 0);
      yield();
      migrate(moved, there);
      moved.join();
    }
    if (how == "caller") {
      long total = 7;
      right &= activate(uses_a_callers_local, hidden_pointer{&total, total}, there, 0) == total;
    }
    if (how == "clean") {
      auto c = make<cell>(there);
      right &= activate(carries_values, c, 0) == 5 + 2470 + 5 + 1;
      right &= activate(keeps_a_freed_one, there, 0) == 1;
      leave_words_below(&c);
      right &= short_arguments_move(there);
      leave_words_below(&c);
      right &= nothing_but_a_lambda_moves();
      destroy(c);
    }
  }
  return right ? 0 : 1;
}

}  // namespace walks

int main(int argc, char** argv) {
  std::string_view how = argc > 1 ? argv[1] : "clean";
  return sojourn::run(argc, argv, [how] {
    sojourn::barrier();
    int status = 0;
    if (sojourn::rank_me() == 0) {
      status = walks::walk(how);
      // The same in a fiber that moves whole, from a stack of another kind.
      if (how == "clean" || how == "buffer") {
        sojourn::rpc(
            0, [](bool clean) { return walks::walk(clean ? "clean" : "buffer"); }, how == "clean")
            .get();
      }
    }
    sojourn::barrier();
    return status;
  });
}
