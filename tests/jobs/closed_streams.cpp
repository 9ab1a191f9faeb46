// SPDX-License-Identifier: Apache-2.0
// Prints a lot, and then the number of words in shared memory and in a block of its heap that are
// no longer what was stored: to the file that the first argument names.
#include <sojourn/shared.hpp>
#include <sojourn/sojourn.hpp>

#include <cstdio>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [argv] {
    constexpr long words = 4096;
    long* shared_words = shared::alloc<long>(words);
    auto heap_words = make_array<long>(rank_me(), words);
    for (long i = 0; i < words; ++i) shared_words[i] = heap_words.local()[i] = i;
    for (int i = 0; i < 1000; ++i) {
      std::printf("a line of output\n");
      std::fprintf(stderr, "a line of errors\n");
    }
    std::fflush(stdout);
    long changed = 0;
    for (long i = 0; i < words; ++i)
      changed += (shared_words[i] != i) + (heap_words.local()[i] != i);
    std::FILE* found = std::fopen(argv[1], "w");
    if (found == nullptr) return 1;
    std::fprintf(found, "%ld\n", changed);
    return std::fclose(found) == 0 ? 0 : 1;
  });
}
