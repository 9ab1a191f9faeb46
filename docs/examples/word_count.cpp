// SPDX-License-Identifier: Apache-2.0
// The most frequent words of some lines, each rank reading its share.
#include <cstdio>
#include <sojourn/containers/dist_counter.hpp>
#include <sojourn/sojourn.hpp>
#include <sstream>
#include <string>
#include <vector>

using namespace sojourn;

const std::vector<std::string> lines = {
    "the owl and the pussycat went to sea",     "in a beautiful pea green boat",
    "they took some honey and plenty of money", "wrapped up in a five pound note",
    "the owl looked up to the stars above",     "and sang to a small guitar"};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto words = dist_counter<std::string>::make();
    finish_all([&] {
      for (std::size_t i = rank_me(); i < lines.size(); i += rank_count()) {
        std::istringstream line(lines[i]);
        for (std::string word; line >> word;) words.ff_add(word);
      }
    });
    for (const auto& [word, times] : words.top_all(4))  // the same on every rank
      if (rank_me() == 0) std::printf("%ld %s\n", times, word.c_str());
    const std::size_t different = words.size_all();
    if (rank_me() == 0) std::printf("%zu different words\n", different);
    words.destroy_all();
  });
}
