// SPDX-License-Identifier: Apache-2.0
// A counter that another job goes on with: docs/containers.md.
//
//   sojourn run -n 4 ./saved begin digits.state     # counts, and saves
//   sojourn run -n 6 ./saved go_on digits.state     # loads that, and counts on
//
// Without arguments one job does both, and removes the files.
#include <sojourn/containers.hpp>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

using namespace sojourn;

// Counts the last digits of the squares of first … last - 1.
void count_digits(const dist_counter<int>& digits, long first, long last) {
  finish_all([&] {
    for (long i = first + rank_me(); i < last; i += rank_count())
      digits.ff_add(static_cast<int>(i * i % 10));
  });
}

std::string temporary_path() {
  const std::string unique = "digits." + std::to_string(getpid());
  return broadcast((std::filesystem::temp_directory_path() / unique).string(), 0);
}

int main(int argc, char** argv) {
  const std::string how = argc > 2 ? argv[1] : "both";
  const std::string given = argc > 2 ? argv[2] : "";
  return run(argc, argv, [how, given] {
    const std::string path = how == "both" ? temporary_path() : given;
    if (how != "go_on") {
      const auto digits = dist_counter<int>::make();
      count_digits(digits, 0, 1000);
      digits.save_all(path);
      digits.destroy_all();
    }
    if (how != "begin") {
      const auto digits = dist_counter<int>::load_all(path);
      count_digits(digits, 1000, 2000);
      for (const auto& [digit, times] : digits.top_all(3))
        if (rank_me() == 0) std::printf("%d: %ld squares\n", digit, times);
    }
    if (how == "both" && rank_me() == 0) remove_saved(path);
  });
}
