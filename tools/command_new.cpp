// SPDX-License-Identifier: Apache-2.0
#include "command_new.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "command_run.hpp"
#include "sojourn/errors.hpp"
#include "words.hpp"

namespace sojourn::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* notes =
    R"(NAME also becomes the name of the program: it begins with a letter, and letters, digits, '-' and '_'
follow. Nothing that is there already is touched.

Examples:
  sojourn new hello                 writes hello/main.cpp, hello/CMakeLists.txt, hello/README.md
  cd hello
  cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
  cmake --build build               with gcc 12 or clang 16, or later
  sojourn run -n 4 build/hello      four ranks, each of which moves a function to an object
  ctest --test-dir build            the same on two ranks
)";

// Each @NAME@ becomes the project's name.
constexpr const char* program_text = R"(#include <sojourn/sojourn.hpp>

#include <cstdio>
using namespace sojourn;

struct counter {
  long count = 0;
  long add(long n) { return count += n; }
};

long add_twice(global_ptr<counter> c) {
  c.call<&counter::add>(via::migrate, 1L);         // remote? then go there, with this frame
  return c.call<&counter::add>(via::migrate, 1L);  // and this is a plain call there
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {  // on every rank
    auto c = make<counter>((rank_me() + 1) % rank_count());
    std::printf("rank %d: %ld\n", rank_me(), activate(add_twice, c));
  });
}
)";

constexpr const char* cmake_text = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ CXX)

find_package(sojourn 0.1 REQUIRED)
add_executable(@NAME@ main.cpp)
target_link_libraries(@NAME@ PRIVATE sojourn::sojourn)

enable_testing()
add_test(NAME two_ranks COMMAND sojourn::command run -n 2 $<TARGET_FILE:@NAME@>)
)";

constexpr const char* readme_text = R"(# @NAME@

A program on Sojourn: a function over objects that lie in other processes.

    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
    cmake --build build
    sojourn run -n 4 build/@NAME@

Each rank makes a counter on the next one and calls it twice from one activation. If cmake does not
find Sojourn, add -DCMAKE_PREFIX_PATH= and the folder it is installed in. To see what travelled, by
migration and by call:

    sojourn run -n 4 --stats build/@NAME@
    SOJOURN_VIA='counter::add=rpc' sojourn run -n 4 --stats build/@NAME@
)";

/// What CMake or the build folder has other uses for.
constexpr std::array<std::string_view, 13> taken_names = {
    "all",  "clean",         "depend",         "edit_cache", "help",     "install", "package",
    "test", "rebuild_cache", "package_source", "CMakeFiles", "Makefile", "Testing"};

void check_name(const std::string& name) {
  auto fits = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.end(), fits)) {
    throw error(fmt::format(
        "'{}' cannot name a program: begin with a letter, and go on with letters, digits, '-', '_'",
        name));
  }
  if (std::find(taken_names.begin(), taken_names.end(), name) != taken_names.end()) {
    throw error(fmt::format("'{}' means something else to CMake; choose another name", name));
  }
}

std::string filled(std::string text, const std::string& name) {
  constexpr std::string_view key = "@NAME@";
  for (std::size_t at; (at = text.find(key)) != std::string::npos;) {
    text.replace(at, key.size(), name);
  }
  return text;
}

/// True when a shell finds programs of `folder` by name; CMake looks for packages beside them.
bool is_in_path(const fs::path& folder) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    std::size_t colon = std::min(rest.find(':'), rest.size());
    std::error_code failure;
    if (colon != 0 && fs::equivalent(rest.substr(0, colon), folder, failure)) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

void write_files(const fs::path& folder,
                 const std::vector<std::pair<std::string, std::string>>& files) {
  if (mkdir(folder.c_str(), 0777) != 0) {
    if (errno == EEXIST) {
      throw error(fmt::format("there is already a '{}' here; choose another name, or move it away",
                              folder.string()));
    }
    throw error(
        fmt::format("cannot make the folder '{}': {}", folder.string(), std::strerror(errno)));
  }
  for (const auto& [name, text] : files) {
    std::ofstream out(folder / name);
    out << text << std::flush;
    if (!out) {
      int reason = errno;
      std::error_code ignored;
      fs::remove_all(folder, ignored);  // we made it a moment ago
      throw error(
          fmt::format("cannot write '{}': {}", (folder / name).string(), std::strerror(reason)));
    }
  }
}

}  // namespace

int new_command(const std::vector<std::string>& words) {
  CLI::App app{
      "Writes a folder NAME with a short program, the CMakeLists.txt that builds it, "
      "and a README.",
      "sojourn new"};
  app.footer(notes);
  std::string name;
  app.add_option("NAME", name, "The folder to make, in this one")->type_name("");
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return 0;
  } catch (const CLI::ParseError&) {
    throw error("takes one NAME and no options; 'sojourn new --help' shows an example");
  }
  if (app.count("NAME") == 0) {
    throw error("no name was given; 'sojourn new --help' shows an example");
  }
  check_name(name);

  fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  bool found_by_name = is_in_path(bin);
  write_files(name, {{"main.cpp", program_text},
                     {"CMakeLists.txt", filled(cmake_text, name)},
                     {"README.md", filled(readme_text, name)}});
  fmt::print(
      "wrote {0}/main.cpp, {0}/CMakeLists.txt and {0}/README.md; now:\n\n"
      "  cd {0}\n"
      "  cmake -S . -B build -DCMAKE_BUILD_TYPE=Release{1}\n"
      "  cmake --build build\n"
      "  {2} run -n 4 build/{0}\n",
      name,
      found_by_name ? "" : ' ' + shell_word("-DCMAKE_PREFIX_PATH=" + bin.parent_path().string()),
      found_by_name ? "sojourn" : shell_word(bin / "sojourn"));
  return 0;
}

}  // namespace sojourn::tools
