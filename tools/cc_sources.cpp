// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <system_error>

#include "cc_parts.hpp"
#include "sojourn/errors.hpp"
#include "words.hpp"

namespace sojourn::tools {

namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw error(fmt::format("cannot read '{}': {}", file.string(), std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!out) throw error(fmt::format("cannot write '{}': {}", file.string(), std::strerror(errno)));
}

/// Words that only files for m4 have: what m4 has expanded has none left.
bool has_macros(const std::string& text) {
  static const std::regex pattern(
      R"((^|[^\w])((MAIN_ENV|EXTERN_ENV|MAIN_INITENV|WAIT_FOR_END)(?!\w)|)"
      R"((LOCKDEC|ALOCKDEC|BARDEC|GSDEC|PAUSEDEC|CONDVARDEC|SEMDEC)\s*\())",
      std::regex::optimize);
  return std::regex_search(text, pattern);
}

/// Whether the file itself makes use of m4, so that m4's own names must be as it expects.
bool commands_m4(const std::string& text) {
  static const std::regex pattern(
      R"((^|\n)[ \t]*(define|undefine|pushdef|popdef|include|sinclude|divert|undivert|ifdef|ifelse)"
      R"(|changequote|changecom)\(|(^|[^\w])dnl(?!\w)|(^|\n)[ \t]*(changequote|changecom)[ \t]*\n)",
      std::regex::optimize);
  return std::regex_search(text, pattern);
}

std::string lower_extension(fs::path file) {
  std::string extension = file.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

/// How a file is called once m4 has expanded it: x.C, x.U and x.c.in become x.c.
fs::path expanded_name(const fs::path& file) {
  fs::path name = file.filename();
  const std::string extension = name.extension().string();
  if (extension == ".in" || extension == ".m4") {
    name = name.stem();
    if (!name.has_extension()) name += ".c";
    return name;
  }
  if (extension == ".C" || extension == ".U") return name.replace_extension(".c");
  if (extension == ".H") return name.replace_extension(".h");
  return name;
}

/// Of which files x.h may be made, in this folder.
std::vector<fs::path> origins(const fs::path& name) {
  std::vector<fs::path> all;
  const std::string extension = name.extension().string();
  if (extension == ".h" || extension == ".c") {
    fs::path upper = name;
    all.push_back(upper.replace_extension(extension == ".h" ? ".H" : ".C"));
  }
  for (const char* added : {".in", ".m4"}) {
    fs::path longer = name;
    all.push_back(longer += added);
  }
  return all;
}

std::string quoted_for_line(const std::string& text) {
  std::string quoted;
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

/// The first place from `at` on that is neither white space, a comment nor a line of the
/// preprocessor.
std::size_t next_token(const std::string& text, std::size_t at) {
  bool line_begins = false;
  while (at < text.size()) {
    if (text[at] == '\n') line_begins = true;
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
    } else if (text.compare(at, 2, "/*") == 0) {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string::npos ? text.size() : end + 2;
    } else if (text.compare(at, 2, "//") == 0 || (text[at] == '#' && line_begins)) {
      at = std::min(text.find('\n', at), text.size());
    } else {
      return at;
    }
  }
  return at;
}

bool goes_on(const std::string& text, std::size_t at) {
  const std::string two = text.substr(at, 2);
  if (two == "->") return true;
  return at < text.size() && std::strchr(";,)]?:=!<>|&/%^.[", text[at]) != nullptr;
}

}  // namespace

bool is_for_m4(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".C" || extension == ".H" || extension == ".U" || extension == ".in" ||
         extension == ".m4";
}

bool is_source(const fs::path& file) {
  const std::string extension = lower_extension(file);
  return is_for_m4(file) || extension == ".c" || extension == ".i" || extension == ".s";
}

std::string with_semicolons(std::string text) {
  static constexpr std::string_view mark = ";sojourn_maybe";
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
    const bool none = goes_on(text, next_token(text, at + mark.size()));
    text.replace(at, mark.size(), none ? "" : ";");
  }
  return text;
}

expanded_sources::expanded_sources(const cc_config& config, const fs::path& folder,
                                   std::vector<fs::path> include_folders, bool verbose)
    : config_(config),
      folder_(folder),
      include_folders_(std::move(include_folders)),
      verbose_(verbose) {}

fs::path expanded_sources::place_of(const fs::path& folder) const {
  return folder_ / "sources" / fs::absolute(folder).lexically_normal().relative_path();
}

expanded_sources::found expanded_sources::find(const std::string& name, bool quoted,
                                               const fs::path& folder) const {
  std::vector<fs::path> folders;
  if (quoted) folders.push_back(folder);
  folders.insert(folders.end(), include_folders_.begin(), include_folders_.end());
  if (fs::path(name).is_absolute()) folders = {""};
  for (const fs::path& in : folders) {
    const fs::path wanted = in / name;
    const fs::path made =
        place_of(wanted.parent_path().empty() ? "." : wanted.parent_path()) / wanted.filename();
    std::error_code none;
    for (const fs::path& origin : origins(wanted))
      if (fs::is_regular_file(origin, none)) return {origin, made};
    if (fs::is_regular_file(wanted, none)) return {wanted, made};
  }
  return {};
}

std::string expanded_sources::run_m4(const fs::path& file, const std::string& text) {
  const fs::path output = folder_ / "m4.out";
  std::vector<std::string> words = {"m4", "-s", "-DSOJOURN_CC"};
  if (commands_m4(text)) {
    words.insert(words.end(), {"-Ulen", "-Uindex"});
  } else {
    words.push_back("-P");  // a function called index() or format() is the program's
  }
  fs::path beside = file.parent_path();
  words.push_back("-I" + (beside.empty() ? "." : beside.string()));
  words.push_back(config_.macros());
  words.push_back(file);
  if (verbose_) complain(fmt::format("{}\n", fmt::join(words, " ")));
  const int status = run_program(words,
                                 "m4 is not here, and files like '" + file.string() +
                                     "' need it: install the package m4 (apt-get install m4)",
                                 {.output = output, .errors = {}});
  if (status != 0)
    throw error(
        fmt::format("m4 could not expand the macros of '{}': see its words above", file.string()));
  return with_semicolons(read_file(output));
}

bool expanded_sources::take(const fs::path& original, const fs::path& made) {
  if (const auto known = taken_.find(made); known != taken_.end()) return known->second;
  taken_[made] = false;
  std::string text = read_file(original);
  const bool own_macros = is_for_m4(original) || has_macros(text);
  bool any = own_macros;
  if (own_macros) {
    text = run_m4(original, text);
  } else {
    text = fmt::format("#line 1 \"{}\"\n", quoted_for_line(original.string())) + text;
  }
  static const std::regex include(R"((^|\n)[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">])");
  for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at) {
    const found f = find((*at)[3], (*at)[2] == "\"", original.parent_path());
    if (!f.original.empty()) any |= take(f.original, f.made);
  }
  write_file(made, text);
  taken_[made] = any;
  return any;
}

fs::path expanded_sources::expand(const fs::path& source) {
  const std::string extension = lower_extension(source);
  if (extension == ".i" || extension == ".s") return source;
  const fs::path made =
      place_of(source.parent_path().empty() ? "." : source.parent_path()) / expanded_name(source);
  return take(source, made) ? made : source;
}

std::vector<std::string> expanded_sources::options_for(const fs::path& source) const {
  std::vector<std::string> options;
  const fs::path own = source.parent_path().empty() ? fs::path(".") : source.parent_path();
  options.push_back("-iquote" + place_of(own).string());
  options.push_back("-iquote" + own.string());
  for (const fs::path& folder : include_folders_)
    options.push_back("-I" + place_of(folder).string());
  return options;
}

}  // namespace sojourn::tools
