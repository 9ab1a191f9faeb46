// SPDX-License-Identifier: Apache-2.0
#include "doctor_parts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Version.hpp>
#include <compiled_json.hpp>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include "command_bench.hpp"
#include "sojourn/errors.hpp"

#ifndef SOJOURN_VERSION
#define SOJOURN_VERSION "0.1.0"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define BUILT_WITH_SANITIZERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)  // clang's way to tell
#define BUILT_WITH_SANITIZERS 1
#endif
#endif

namespace sojourn::tools {
namespace {

/// The first of `commands` that PATH leads to, as a path, or "".
std::string find_command(std::initializer_list<const char*> commands) {
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (const char* command : commands) {
    for (std::size_t start = 0; start <= folders.size();) {
      std::size_t end = std::min(folders.find(':', start), folders.size());
      std::string file = folders.substr(start, end - start) + "/" + command;
      if (access(file.c_str(), X_OK) == 0) return file;
      start = end + 1;
    }
  }
  return "";
}

struct part {
  const char* name;
  std::initializer_list<const char*> commands;
  const char* packages;  ///< Their names in Debian and Ubuntu.
  const char* use;
};

const part parts[] = {
    {"g++", {"g++"}, "g++", "builds programs"},
    {"clang", {"clang++-19", "clang++"}, "clang-19", "builds programs as well"},
    {"cmake", {"cmake"}, "cmake ninja-build", "builds programs that say find_package(sojourn)"},
    {"m4", {"m4"}, "m4", "`sojourn cc` expands the macros of C programs by it"},
    {"OpenMPI", {"mpirun"}, "openmpi-bin libopenmpi-dev", "`sojourn bench` compares with it"},
    {"valgrind", {"valgrind"}, "valgrind", "`sojourn bench calls` counts instructions by it"},
    {"gdb", {"gdb"}, "gdb", "shows the stacks of a rank"},
    {"qemu",
     {"qemu-aarch64", "qemu-aarch64-static"},
     "qemu-user",
     "runs what is built for aarch64"},
    {"aarch64 compiler", {"aarch64-linux-gnu-g++"}, "g++-aarch64-linux-gnu", "builds for aarch64"},
};

finding check_part(const part& p, bool has_apt) {
  std::string file = find_command(p.commands);
  if (!file.empty()) return {p.name, severity::ok, file, ""};
  return {p.name, severity::warning, fmt::format("not installed; optional: {}", p.use),
          has_apt ? fmt::format("apt-get install {}", p.packages)
                  : fmt::format("install {}, or what your system calls it", p.packages)};
}

finding check_benchmarks() {
  finding f{"benchmarks", severity::warning, "", ""};
  try {
    std::string driver = bench_driver();
    if (access(driver.c_str(), X_OK) == 0) return {f.check, severity::ok, driver, ""};
    f.found = "not built or not installed; optional: `sojourn bench` runs them";
    f.remedy =
        "run `./dev bench` in Sojourn's source folder, or install with SOJOURN_BUILD_BENCH=ON";
  } catch (const error& e) {
    f.found = e.what();
    f.remedy = "mount /proc";
  }
  return f;
}

}  // namespace

std::string own_file() {
  std::error_code failure;
  std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) throw error(fmt::format("cannot read /proc/self/exe: {}", failure.message()));
  return file;
}

finding check_build() {
#if defined(__clang__)
  const char* compiler = "clang " __clang_version__;
#else
  const char* compiler = "gcc " __VERSION__;
#endif
#if defined(__x86_64__)
  const char* machine = "x86-64";
#else
  const char* machine = "aarch64";
#endif
#ifdef BUILT_WITH_SANITIZERS
  const char* kind = "with sanitizers";
#elif defined(NDEBUG)
  const char* kind = "release";
#else
  const char* kind = "debug";
#endif
  return {"build", severity::ok,
          fmt::format("Sojourn {}, {}, {}, {}; fmt {}.{}.{}, CLI11 {}, nlohmann-json {}.{}.{}",
                      SOJOURN_VERSION, machine, kind, compiler, FMT_VERSION / 10000,
                      FMT_VERSION / 100 % 100, FMT_VERSION % 100, CLI11_VERSION,
                      NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                      NLOHMANN_JSON_VERSION_PATCH),
          ""};
}

std::vector<finding> check_optional_parts() {
  bool has_apt = !find_command({"apt-get"}).empty();
  std::vector<finding> findings;
  for (const part& p : parts) findings.push_back(check_part(p, has_apt));
  findings.push_back(check_debug_information());
  findings.push_back(check_benchmarks());
  return findings;
}

}  // namespace sojourn::tools
