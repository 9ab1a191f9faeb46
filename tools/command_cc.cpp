// SPDX-License-Identifier: Apache-2.0
#include "command_cc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "cc_parts.hpp"
#include "sojourn/errors.hpp"
#include "words.hpp"

namespace sojourn::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* help =
    R"(Compiles C programs that are written to the macros of ANL and PARMACS (MAIN_ENV, CREATE, G_MALLOC,
LOCK, BARRIER, ...), and links them with Sojourn: their processes share memory page by page.

Usage: sojourn cc [OPTIONS OF THE C COMPILER...] FILES... -o PROGRAM

Files that end in .C, .H, .U, .in or .m4, and others that have such macros, are expanded by m4 first, in a
folder that is gone afterwards; so are the headers they include (x.h is made of x.H or x.h.in). Messages
of the compiler name your files and lines. All options of the compiler work, -c and -o too, so that
it takes the compiler's place in makefiles.

  --macros       print the file of the macros, for makefiles that call m4 themselves
  --dynamic      do not link the C library statically (for libraries that exist only as .so): then
                 what points into the library, such as a FILE *, means nothing in other processes
  -r             make an object file of the whole program, which a build system links
  --verbose      print the commands
  --help

Examples:
  sojourn cc -O2 *.C -o lu -lm      one command for a whole program
  sojourn run -n 4 ./lu -p4         four ranks; main() runs on the first and creates the others
  ./lu -p4                          one rank, four processes in turns
  m4 -s -Ulen -Uindex $(sojourn cc --macros) lu.C > lu.c
  sojourn cc -O2 lu.c -o lu -lm     the same in two steps
  make CC='sojourn cc' MACROS=$(sojourn cc --macros)
                                    an existing makefile

SOJOURN_CC and SOJOURN_CXX name the compilers to use [gcc, g++, or clang, clang++]. Which macros there
are, and what programs must not do: docs/parmacs.md.
)";

/// Functions of the C library that a program has from the runtime, by another name.
constexpr std::array replaced = {
    "malloc",         "calloc",         "realloc",        "reallocarray",
    "free",           "cfree",          "posix_memalign", "memalign",
    "aligned_alloc",  "valloc",         "pvalloc",        "malloc_usable_size",
    "strdup",         "strndup",        "asprintf",       "vasprintf",
    "exit",           "_exit",          "_Exit",          "__strdup",
    "__asprintf_chk", "__vasprintf_chk"};
/// System calls and stdio, which may be given shared memory (sojourn/shared_io.h).
constexpr std::array on_shared_memory = {
    "read",    "write",   "pread",    "pwrite",  "readv", "writev",  "recv",  "recvfrom",
    "recvmsg", "send",    "sendto",   "sendmsg", "fread", "fwrite",  "fgets", "fputs",
    "puts",    "vfscanf", "vfprintf", "fscanf",  "scanf", "fprintf", "printf"};
/// Names by which the C library's headers call some of these.
constexpr std::array aliases = {
    std::pair{"__isoc99_fscanf", "fscanf"},   std::pair{"__isoc99_scanf", "scanf"},
    std::pair{"__isoc99_vfscanf", "vfscanf"}, std::pair{"__isoc23_fscanf", "fscanf"},
    std::pair{"__isoc23_scanf", "scanf"},     std::pair{"__isoc23_vfscanf", "vfscanf"}};

/// Variables of the C library that old programs define once more (int optind;), which means them.
constexpr std::array of_the_library = {"optarg",   "optind",   "opterr", "optopt", "environ",
                                       "timezone", "daylight", "tzname", "signgam"};

/// Old C is full of what newer compilers refuse.
constexpr std::array for_old_programs = {"-std=gnu17", "-fcommon", "-fno-strict-aliasing",
                                         "-Wno-implicit-int", "-Wno-implicit-function-declaration"};

/// All of the program's own variables come to lie in two sections of their own, whose ends the
/// runtime finds by their names.
constexpr const char* globals_script =
    "SECTIONS {\n"
    "  sojourn_program_data : { *(.data .data.* .gnu.linkonce.d.*) }\n"
    "  sojourn_program_bss : { *(.bss .bss.* .gnu.linkonce.b.* COMMON) }\n"
    "}\n";

bool is_in_path(const std::string& program) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  for (;;) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    std::error_code none;
    if (colon != 0 && fs::exists(fs::path(rest.substr(0, colon)) / program, none)) return true;
    if (colon == rest.size()) return false;
    rest.remove_prefix(colon + 1);
  }
}

std::string compiler(const char* variable, std::initializer_list<const char*> usual) {
  const char* named = std::getenv(variable);
  if (named != nullptr && *named != 0) return named;
  for (const char* name : usual)
    if (is_in_path(name)) return name;
  return *usual.begin();
}
std::string c_compiler() { return compiler("SOJOURN_CC", {"gcc", "clang", "cc"}); }
bool is_clang(const std::string& compiler) {
  return fs::path(compiler).filename().string().find("clang") != std::string::npos;
}
/// The runtime is written in C++.
std::string linking_compiler() {
  const std::string c = fs::path(c_compiler()).filename().string();
  if (is_clang(c)) {
    std::string matching = c;
    matching.replace(matching.find("clang"), 5, "clang++");
    return compiler("SOJOURN_CXX", {matching.c_str(), "clang++", "g++"});
  }
  return compiler("SOJOURN_CXX", {"g++", "c++", "clang++"});
}

/// libx.so or libx.so.1.
bool is_shared_library(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return name.ends_with(".so") || std::regex_search(name, std::regex(R"(\.so\.[0-9])"));
}

class build {
 public:
  explicit build(const cc_request& request)
      : request_(request),
        config_(read_cc_config()),
        sources_(config_, folder_.path(), request.include_folders, request.verbose) {}

  int run() {
    if (request_.sources.empty() && !request_.stop.empty())
      throw error("no source file was given; 'sojourn cc --help' shows examples");
    if (!request_.stop.empty() && request_.sources.size() > 1 && !request_.output.empty())
      throw error(fmt::format("{} with -o takes one source file", request_.stop));
    for (const std::string& source : request_.sources) {
      const int status = compile(source);
      if (status != 0) return status;
    }
    return request_.stop.empty() ? link() : 0;
  }

 private:
  int call(const std::vector<std::string>& words, const std::string& missing,
           const output_files& to = {}) const {
    if (request_.verbose) complain(fmt::format("{}\n", fmt::join(words, " ")));
    return run_program(words, missing, to);
  }

  static std::string no_compiler(const std::string& name, const char* variable) {
    return fmt::format(
        "there is no '{}' here: install a C and a C++ compiler (apt-get install g++), "
        "or set {}",
        name, variable);
  }

  int compile(const std::string& source) {
    std::vector<std::string> words = {c_compiler()};
    words.insert(words.end(), for_old_programs.begin(), for_old_programs.end());
    if (is_clang(words[0])) words.emplace_back("-Wno-deprecated-non-prototype");
    words.insert(words.end(), config_.compile.begin(), config_.compile.end());
    words.push_back("-I" + config_.include.string());
    words.insert(words.end(), {"-include", "sojourn_shared.h"});
    const fs::path expanded = sources_.expand(source);
    if (expanded != source)
      for (std::string& option : sources_.options_for(source)) words.push_back(std::move(option));
    words.insert(words.end(), request_.compile_options.begin(), request_.compile_options.end());
    words.push_back("-fno-lto");
    // Functions that check sizes have names of their own, under which they would not be replaced.
    words.insert(words.end(), {"-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=0"});
    if (request_.stop.empty() || request_.stop == "-c" || request_.stop == "-S" ||
        request_.stop == "-E") {
      words.push_back(request_.stop.empty() ? "-c" : request_.stop);
    }
    const fs::path output = output_of(source);
    if (!output.empty()) words.insert(words.end(), {"-o", output.string()});
    words.push_back(expanded.string());
    return call(words, no_compiler(words[0], "SOJOURN_CC"));
  }

  /// Where the compiler writes; empty: to standard output.
  fs::path output_of(const std::string& source) {
    if (request_.stop.empty()) {
      const fs::path object = folder_.path() / fmt::format("{}.o", objects_.size());
      objects_.push_back(object);
      return object;
    }
    if (!request_.output.empty()) return request_.output;
    if (request_.stop != "-c" && request_.stop != "-S") return {};
    fs::path name = fs::path(source).filename();
    while (name.extension() == ".in" || name.extension() == ".m4") name = name.stem();
    return name.replace_extension(request_.stop == "-c" ? ".o" : ".s");
  }

  /// Archives of the program's own are found in its folders; others are the system's.
  fs::path own_archive(const std::string& name) const {
    for (const fs::path& folder : request_.library_folders) {
      std::error_code none;
      const fs::path file = folder / ("lib" + name + ".a");
      if (fs::exists(file, none)) return file;
    }
    return {};
  }

  int link() {
    // Objects and archives become one object, in which the program's variables lie together.
    std::vector<std::string> own;
    std::vector<std::string> other;
    std::size_t next = 0;
    std::set<std::string> sources(request_.sources.begin(), request_.sources.end());
    for (const std::string& input : request_.inputs) {
      if (sources.contains(input)) {
        own.push_back(objects_[next++]);
      } else if (input.rfind("-l", 0) == 0) {
        const fs::path archive = own_archive(input.substr(2));
        (archive.empty() ? other : own).push_back(archive.empty() ? input : archive.string());
      } else if (input.rfind("-L", 0) == 0 || is_shared_library(input)) {
        other.push_back(input);
      } else {
        own.push_back(input);
      }
    }
    if (own.empty()) throw error("no file was given; 'sojourn cc --help' shows examples");
    const fs::path program = folder_.path() / "program.o";
    if (const int status = join(own, program); status != 0) return status;
    if (const int status = rename_symbols(program, needs_program(other)); status != 0)
      return status;
    const std::string output = request_.output.empty() ? "a.out" : request_.output;
    if (request_.relocatable) {
      std::error_code failure;
      fs::copy_file(program, output, fs::copy_options::overwrite_existing, failure);
      if (failure) throw error(fmt::format("cannot write '{}': {}", output, failure.message()));
      return 0;
    }
    std::vector<std::string> words = {linking_compiler(), "-o", output, program.string()};
    // -no-pie, beside -static.
    if (is_clang(words[0])) words.emplace_back("-Wno-unused-command-line-argument");
    words.insert(words.end(), request_.link_options.begin(), request_.link_options.end());
    words.insert(words.end(), other.begin(), other.end());
    words.push_back("-Wl,--wrap=main");
    words.push_back(config_.library.string());
    words.insert(words.end(), config_.link.begin(), config_.link.end());
    if (!request_.dynamic)
      words.insert(words.end(), {"-Wl,--wrap=dlopen", "-static", "-Wl,--eh-frame-hdr"});
    words.insert(words.end(), {"-pthread", "-lm"});
    const int status = call(words, no_compiler(words[0], "SOJOURN_CXX"));
    if (status != 0 && !request_.dynamic)
      complain("sojourn cc: (a library that exists only as .so needs --dynamic)\n");
    return status;
  }

  int join(const std::vector<std::string>& own, const fs::path& program) const {
    const fs::path script = folder_.path() / "globals.ld";
    std::ofstream(script) << globals_script;
    // The linker is asked through the compiler, which knows where it is.
    std::vector<std::string> words = {c_compiler(),
                                      "-r",
                                      "-nostdlib",
                                      "-fno-lto",
                                      "-Wl,-d",
                                      "-Wl,-u,main",
                                      "-Wl,-T," + script.string(),
                                      "-o",
                                      program.string()};
    words.insert(words.end(), own.begin(), own.end());
    return call(words, no_compiler(words[0], "SOJOURN_CC"));
  }

  /// The global symbols of a file: true for those that it defines itself.
  std::map<std::string, bool> symbols_of(const fs::path& object) const {
    const fs::path list = folder_.path() / "symbols";
    if (call({"nm", "-g", "-P", object.string()}, "there is no 'nm' here: install binutils",
             {.output = list, .errors = {}}) != 0)
      throw error(fmt::format("the symbols of {} cannot be read", object.string()));
    std::map<std::string, bool> names;
    std::ifstream in(list);
    for (std::string line; std::getline(in, line);) {
      const std::size_t end = line.find(' ');
      if (end + 1 < line.size()) names[line.substr(0, end)] = line[end + 1] != 'U';
    }
    return names;
  }

  /// Whether a library may call functions of the program's by their names, as that of flex does.
  static bool needs_program(const std::vector<std::string>& libraries) {
    static const std::set<std::string> systems = {"-lm", "-lpthread", "-lc", "-lrt", "-ldl"};
    return std::any_of(libraries.begin(), libraries.end(), [](const std::string& name) {
      return name.rfind("-L", 0) != 0 && !systems.contains(name);
    });
  }

  /// Gives functions of the library other names. Unless others need them, the program's own names
  /// are for itself alone from here on: what it calls send or time is not for the runtime to call.
  int rename_symbols(const fs::path& program, bool keeps_names) const {
    const std::map<std::string, bool> symbols = symbols_of(program);
    const auto main = symbols.find("main");
    if (main == symbols.end() || !main->second)
      throw error(
          "none of these files has a main() (a program of Fortran or C++ cannot be linked "
          "this way)");
    const fs::path list = folder_.path() / "renamed";
    {
      std::ofstream out(list);
      std::set<std::string> taken;
      // What the program has of its own, it keeps. One name cannot take the place of two.
      const auto rename = [&](const std::string& name, const std::string& as) {
        const auto symbol = symbols.find(name);
        if (symbol == symbols.end() || symbol->second || !taken.insert(as).second) return;
        out << name << ' ' << as << '\n';
      };
      for (const char* name : replaced) rename(name, std::string("sojourn_program_") + name);
      for (const char* name : on_shared_memory) rename(name, std::string("sojourn_shared_") + name);
      for (const auto& [name, as] : aliases) rename(name, std::string("sojourn_shared_") + as);
    }
    std::vector<std::string> words = {"objcopy", "--redefine-syms=" + list.string()};
    if (!keeps_names) words.push_back("--keep-global-symbol=main");
    for (const char* name : of_the_library) {
      const auto symbol = symbols.find(name);
      if (symbol == symbols.end() || !symbol->second) continue;
      if (!keeps_names) words.push_back(std::string("--keep-global-symbol=") + name);
      words.push_back(std::string("--weaken-symbol=") + name);
    }
    words.push_back(program.string());
    return call(words, "there is no 'objcopy' here: install binutils");
  }

  const cc_request& request_;
  cc_config config_;
  temporary_folder folder_;
  expanded_sources sources_;
  std::vector<fs::path> objects_;
};

}  // namespace

int cc_command(const std::vector<std::string>& words) {
  const cc_request request = parse_cc(words);
  if (request.wants_help) {
    print(help);
    return 0;
  }
  if (request.wants_macros) {
    print(read_cc_config().macros().string() + "\n");
    return 0;
  }
  if (request.passes_on) {
    std::vector<std::string> all = {c_compiler()};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all, fmt::format("there is no '{}' here: install a C compiler", all[0]));
  }
  if (words.empty()) throw error("no file was given; 'sojourn cc --help' shows examples");
  return build(request).run();
}

}  // namespace sojourn::tools
