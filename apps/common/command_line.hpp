// SPDX-License-Identifier: Apache-2.0
// What command lines share that know nothing of Sojourn: those of applications, and those of the
// MPI programs they are compared with.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace apps {

/// Ends the program: rank 0 says `what()`, one sentence. Thrown by every rank alike, because all
/// see the same command line and the same files.
class refusal : public std::runtime_error {
 public:
  refusal(int status, const std::string& what) : std::runtime_error(what), status_(status) {}
  /// 2 for a bad option or bad input, 1 for all that failed later.
  int status() const { return status_; }

 private:
  int status_;
};

/// What parsing a command line came to: nothing to say and 0, or the last words of the program.
struct parsed {
  int status = 0;
  std::string last_words;
};
inline parsed parse(CLI::App& options, int argc, char** argv) {
  try {
    options.parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return {0, options.help()};
    return {2, options.get_name() + ": " + e.what() + "\n"};
  }
}

/// Most cycles between two requests: some seconds. More is a mistake, as is a negative number,
/// which would be taken for a very large one.
inline constexpr std::uint64_t think_cycles_max = std::uint64_t{1} << 34;

/// CLI::Range lets "nan" through, which lies in no range.
inline CLI::Validator number_between(double least, double most) {
  CLI::Validator in_range = CLI::Range(least, most);
  in_range.operation([in_range](std::string& text) {
    double value = 0;
    const bool is_nan = CLI::detail::lexical_cast(text, value) && std::isnan(value);
    return is_nan ? text + " is no number" : in_range(text);
  });
  return in_range;
}

/// A number or an option in the place of a file's name is one that was forgotten.
inline CLI::Validator is_file_name() {
  return {[](std::string& text) {
            const bool is_number =
                !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            if (!is_number && text.rfind('-', 0) != 0) return std::string();
            return "takes the name of a file, not " + text + "; write ./" + text +
                   " for one of that name";
          },
          ""};
}

/// `--json [FILE]`: figures for machines, in FILE or, without one, on standard output; the readable
/// report then goes to standard error. Rank 0 alone opens and writes; what that comes to is for the
/// others to be told.
class json_option {
 public:
  void add_to(CLI::App& options) {
    option_ = options.add_option("--json", path_, "Write the figures as JSON too")
                  ->expected(0, 1)
                  ->check(is_file_name())
                  ->option_text("[FILE]");
  }
  bool given() const { return static_cast<bool>(*option_); }
  const std::string& path() const { return path_; }
  /// Where the readable report goes.
  std::FILE* readable() const { return given() && path_.empty() ? stderr : stdout; }

  /// False when the file cannot be opened.
  bool open_file() {
    file_ = std::fopen(path_.c_str(), "w");
    return file_ != nullptr;
  }
  /// False when the disk is full.
  bool write_here(const nlohmann::ordered_json& figures) {
    std::FILE* out = file_ != nullptr ? file_ : stdout;
    const std::string text = figures.dump(2) + "\n";
    bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
    written = std::fflush(out) == 0 && written;
    if (file_ != nullptr) written = std::fclose(std::exchange(file_, nullptr)) == 0 && written;
    return written;
  }
  refusal failure() const { return {1, "cannot write the figures to " + path_}; }

 private:
  CLI::Option* option_ = nullptr;
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace apps
