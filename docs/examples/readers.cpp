// SPDX-License-Identifier: Apache-2.0
// Counts the words of a text and adds up a column of a table, each rank reading its part of the
// file. With the path of a text as its argument, counts the words of that.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sojourn/containers/dist_counter.hpp>
#include <sojourn/readers.hpp>
#include <sojourn/sojourn.hpp>
#include <sstream>
#include <string>

using namespace sojourn;

void count_words(const std::string& path) {
  const auto words = dist_counter<std::string>::make();
  finish_all([&] {
    for (const std::string_view line : lines(path)) {  // those of this rank
      std::istringstream text{std::string(line)};
      for (std::string word; text >> word;) words.ff_add(word);
    }
  });
  for (const auto& [word, times] : words.top_all(3))
    if (rank_me() == 0) std::printf("%ld %s\n", times, word.c_str());
  words.destroy_all();
}

void add_up(const std::string& path) {
  csv stations(path);
  const std::size_t minutes = stations.column("minutes");
  long mine = 0;
  for (const csv_row& station : stations) mine += station.as<long>(minutes);
  const long all = reduce(mine, std::plus<>());
  if (rank_me() == 0) std::printf("%ld minutes\n", all);
}

// Makes a file on rank 0, and returns its path on all ranks.
std::string write_file(const char* name, const char* text) {
  std::string path;
  if (rank_me() == 0) {
    const std::string unique = std::string(name) + '.' + std::to_string(now_ns());
    path = (std::filesystem::temp_directory_path() / unique).string();
    std::ofstream(path) << text;
  }
  return broadcast(path);  // which is also when the file is there
}

int main(int argc, char** argv) {
  const char* given = argc > 1 ? argv[1] : nullptr;
  return run(argc, argv, [given] {
    if (given != nullptr) return count_words(given);
    const std::string poem = write_file("poem",
                                        "the owl and the pussycat went to sea\n"
                                        "in a beautiful pea green boat\n"
                                        "they took some honey and plenty of money\n"
                                        "wrapped up in a five pound note\n"
                                        "the owl looked up to the stars above\n"
                                        "and sang to a small guitar\n");
    const std::string line = write_file("line",
                                        "station,minutes\n"
                                        "Harbour,4\n"
                                        "\"Market, north\",3\n"
                                        "\"The \"\"Owl\"\"\",12\n");
    count_words(poem);
    add_up(line);
    barrier();  // all have read them
    if (rank_me() == 0) {
      std::filesystem::remove(poem);
      std::filesystem::remove(line);
    }
  });
}
