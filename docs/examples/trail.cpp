// SPDX-License-Identifier: Apache-2.0
// A walk from rank to rank that brings home what it has seen.
#include <cstdio>
#include <sojourn/containers.hpp>
#include <sojourn/sojourn.hpp>
#include <string_view>
#include <vector>

using namespace sojourn;

struct letter {
  char what;
  int next;
};

trail<char> spell(dist_map<int, letter> letters, int from) {
  trail<char> word;
  while (const auto found = letters.find(via::migrate, from)) {
    word.push_back(found->what);
    from = found->next;
  }
  return word;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    // A verse, letter by letter, each on the rank that the hash of its number says.
    constexpr std::string_view verse =
        "the owl and the pussycat went to sea in a beautiful pea green boat; "
        "they took some honey, and plenty of money, wrapped up in a five pound note";
    const auto letters = dist_map<int, letter>::make();
    finish_all([&] {
      if (rank_me() != 0) return;
      for (int i = 0; i < static_cast<int>(verse.size()); ++i)
        letters.ff_insert(i, {verse[static_cast<std::size_t>(i)], i + 1});
    });
    if (rank_me() == 0) {
      const std::vector<char> word = activate(spell, letters, 0).take();
      std::printf("%.*s\n", static_cast<int>(word.size()), word.data());
    }
    barrier();
    letters.destroy_all();
  });
}
