// SPDX-License-Identifier: Apache-2.0
// Runs the fuzz target where there is no fuzzer: over each file of a corpus, and over mutations of
// them from a fixed seed.
//
//   fuzz_marshal_test corpus [--seed N] [--first N] [--count N]
//   fuzz_marshal_test corpus --write
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <string>

#include "marshal_target.hpp"

namespace {

using fuzz::message;

unsigned seed = 1;
long running = -1;  // the mutation; before them, files

void tell_how_to_replay(int signal) {
  char text[160];
  int n = std::snprintf(text, sizeof text,
                        "signal %d at mutation %ld; replay: --seed %u --first %ld --count 1\n",
                        signal, running, seed, running);
  if (n > 0) (void)!write(2, text, static_cast<std::size_t>(n));
  ::signal(signal, SIG_DFL);
  raise(signal);
}

// ---- Memory: a message of few bytes must not make the program take much
// --------------------------

std::size_t taken = 0;
std::size_t taken_most = 0;

void* take(std::size_t bytes, std::size_t alignment) {
  void* p = std::aligned_alloc(alignment, (bytes + 2 * alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  taken += bytes;
  taken_most = std::max(taken_most, bytes);
  return p;
}

message mutated(const std::vector<message>& from, std::mt19937_64& r) {
  message m = from[r() % from.size()];
  constexpr std::uint64_t odd[] = {0,          1,          2,     3,         0x7f,
                                   0x80,       0xff,       0x100, 0xffff,    0x10000,
                                   0x7fffffff, 0xffffffff, ~0ull, ~0ull / 2, ~0ull / 8 + 1,
                                   1ull << 40, 1ull << 61};
  for (unsigned n = 1 + r() % 4; n > 0; --n) {
    std::size_t at = m.empty() ? 0 : r() % m.size();
    switch (r() % 8) {
      case 0:  // a bit
        if (!m.empty()) m[at] = static_cast<std::uint8_t>(m[at] ^ 1u << r() % 8);
        break;
      case 1:  // a byte
        if (!m.empty()) m[at] = static_cast<std::uint8_t>(r());
        break;
      case 2:  // cut off
        m.resize(at);
        break;
      case 3: {  // a number that programs stumble over
        std::uint64_t v = odd[r() % std::size(odd)];
        std::size_t size = std::size_t{1} << r() % 4;
        if (m.size() >= size) std::memcpy(m.data() + r() % (m.size() - size + 1), &v, size);
        break;
      }
      case 4: {  // a piece of another message
        const message& other = from[r() % from.size()];
        if (other.empty()) break;
        std::size_t first = r() % other.size();
        std::size_t length = r() % (other.size() - first) + 1;
        m.insert(m.begin() + static_cast<std::ptrdiff_t>(at),
                 other.begin() + static_cast<std::ptrdiff_t>(first),
                 other.begin() + static_cast<std::ptrdiff_t>(first + length));
        break;
      }
      case 5: {  // left out
        std::size_t length = std::min<std::size_t>(r() % 16, m.size() - at);
        m.erase(m.begin() + static_cast<std::ptrdiff_t>(at),
                m.begin() + static_cast<std::ptrdiff_t>(at + length));
        break;
      }
      case 6:  // read as other types
        if (!m.empty()) m[0] = static_cast<std::uint8_t>(r());
        break;
      default: {  // a header that says what is true, so that the values behind are looked at
        if (m.size() < 17) break;
        std::uint64_t size = m.size() - 17;
        std::memcpy(m.data() + 9, &size, sizeof size);
      }
    }
  }
  return m;
}

int misuse(const char* what) {
  std::fprintf(stderr, "fuzz_marshal_test: %s\n", what);
  return 2;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) { return take(bytes, 16); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, std::max<std::size_t>(16, static_cast<std::size_t>(alignment)));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

int main(int argc, char** argv) {
  if (argc < 2) return misuse("the folder of the corpus is missing");
  std::filesystem::path folder = argv[1];
  long first = 0;
  long count = 100'000;
  for (int i = 2; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--write") {
      std::filesystem::create_directories(folder);
      int n = 0;
      for (const message& m : fuzz::good_messages()) {
        char name[16];
        std::snprintf(name, sizeof name, "%02d", n++);
        std::ofstream out(folder / name, std::ios::binary);
        out.write(reinterpret_cast<const char*>(m.data()), static_cast<std::streamsize>(m.size()));
      }
      return 0;
    }
    if (i + 1 == argc) return misuse("a number is missing");
    long number = std::atol(argv[++i]);
    if (word == "--seed") {
      seed = static_cast<unsigned>(number);
    } else if (word == "--first") {
      first = number;
    } else if (word == "--count") {
      count = number;
    } else {
      return misuse("options are --write, --seed, --first and --count");
    }
  }

  std::vector<message> corpus;
  std::vector<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry);
  std::sort(names.begin(), names.end());
  int accepted = 0;
  for (const auto& name : names) {
    std::ifstream in(name, std::ios::binary);
    std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    corpus.emplace_back(text.begin(), text.end());
    accepted += fuzz::read_message(corpus.back().data(), corpus.back().size());
  }
  // All of it but the two of long values, whose blocks nobody keeps, is as a program sends it.
  if (corpus.empty() || accepted != static_cast<int>(corpus.size()) - 2) {
    std::fprintf(stderr,
                 "%d of the %zu messages in %s are accepted; write them anew (--write) when "
                 "the format has changed\n",
                 accepted, corpus.size(), folder.c_str());
    return 1;
  }

  for (int s : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM}) signal(s, tell_how_to_replay);
  long good = 0;
  for (running = first; running < first + count; ++running) {
    alarm(20);
    std::mt19937_64 r(seed * 1'000'003ull + static_cast<unsigned long>(running));
    message m = mutated(corpus, r);
    taken = taken_most = 0;
    good += fuzz::read_message(m.data(), m.size());
    // It is written and read twice, and nodes of containers are larger than the bytes they take.
    if (taken > 4096 * (m.size() + 64)) {
      std::fprintf(stderr, "a message of %zu bytes made the program take %zu, %zu at once\n",
                   m.size(), taken, taken_most);
      std::abort();
    }
  }
  std::printf("%zu messages and %ld mutations; %ld of these are values all the same\n",
              corpus.size(), count, good);
  return 0;
}
