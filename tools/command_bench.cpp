// SPDX-License-Identifier: Apache-2.0
#include "command_bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sojourn/errors.hpp"

namespace sojourn::tools {

int bench_command(const std::vector<std::string>& words) {
  std::error_code failure;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) throw error(fmt::format("cannot read /proc/self/exe: {}", failure.message()));
  std::string driver = self.parent_path() / "bench_driver";

  std::vector<char*> arguments = {driver.data()};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(driver.c_str(), arguments.data());
  if (errno == ENOENT) {
    throw error(fmt::format(
        "the benchmarks are not built: there is no {}; './dev bench' builds and runs them",
        driver));
  }
  throw error(fmt::format("cannot start {}: {}", driver, std::strerror(errno)));
}

}  // namespace sojourn::tools
