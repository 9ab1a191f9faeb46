// SPDX-License-Identifier: Apache-2.0
#include "command_bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sojourn/errors.hpp"

namespace sojourn::tools {

namespace {

struct place {
  std::string driver;
  bool is_built;  ///< In the build tree; otherwise installed.
};

place find_driver() {
  std::error_code failure;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) throw error(fmt::format("cannot read /proc/self/exe: {}", failure.message()));
  std::filesystem::path folder = self.parent_path();
  bool is_built = std::filesystem::exists(folder.parent_path() / "CMakeCache.txt", failure);
  if (!is_built) folder /= SOJOURN_LIBEXEC_FROM_BIN;
  return {(folder / "bench_driver").lexically_normal(), is_built};
}

}  // namespace

std::string bench_driver() { return find_driver().driver; }

int bench_command(const std::vector<std::string>& words) {
  auto [driver, is_built] = find_driver();
  std::vector<char*> arguments = {driver.data()};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(driver.c_str(), arguments.data());
  if (errno == ENOENT) {
    throw error(
        is_built
            ? fmt::format("the benchmarks are not built: there is no {}; './dev bench' builds them",
                          driver)
            : fmt::format(
                  "the benchmarks are not installed: there is no {}; configure Sojourn with "
                  "SOJOURN_BUILD_BENCH=ON and install it again",
                  driver));
  }
  throw error(fmt::format("cannot start {}: {}", driver, std::strerror(errno)));
}

}  // namespace sojourn::tools
