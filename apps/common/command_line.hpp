// SPDX-License-Identifier: Apache-2.0
// What command lines share that know nothing of Sojourn: those of applications, and those of the
// MPI programs they are compared with. CLI11 does the work, in one source: it is a header of which
// each source that includes it compiles all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

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

/// Most cycles between two requests: some seconds. More is a mistake, as is a negative number,
/// which would be taken for a very large one.
inline constexpr std::uint64_t think_cycles_max = std::uint64_t{1} << 34;

/// An option that was added to a command line, which must still be there.
class option {
 public:
  option& one_of(const std::vector<std::string>& words);
  /// What --help shows in place of the value that the variable has now.
  option& default_text(const std::string& text);
  /// Refuses a command line that has the other option too.
  option& excludes(const std::string& other);
  bool given() const;

 protected:
  friend class command_line;
  friend class json_option;
  explicit option(CLI::Option* o) : option_(o) {}

  CLI::Option* option_;
};

/// One whose values are of type int, unsigned, unsigned long or double.
template <class Number>
class number_option : public option {
 public:
  using option::option;
  /// Values from `least` to `most`, both included. "nan" lies in no range.
  option& between(Number least, Number most);
};

/// The options of a program, and --help. An option is bound to a variable, whose value at that time
/// is the default that --help shows.
class command_line {
 public:
  command_line(const std::string& description, const std::string& program);
  ~command_line();
  command_line(const command_line&) = delete;
  command_line& operator=(const command_line&) = delete;

  template <class Number>
  number_option<Number> add(const std::string& name, Number& value, const std::string& help);
  template <class Number>
  number_option<Number> add(const std::string& name, std::optional<Number>& value,
                            const std::string& help);
  option add(const std::string& name, std::string& value, const std::string& help);
  option add_flag(const std::string& name, bool& value, const std::string& help);

  /// One word for each value that the variable may have; it has one of them now.
  template <class T>
  option add_choice(const std::string& name, T& value,
                    std::initializer_list<std::pair<const char*, T>> choices,
                    const std::string& help) {
    return add_choice(name, value, std::vector(choices), help);
  }
  template <class T>
  option add_choice(const std::string& name, T& value,
                    const std::vector<std::pair<const char*, T>>& choices,
                    const std::string& help) {
    std::vector<std::string> words;
    std::vector<T> values;
    std::string now;
    for (const auto& [word, meaning] : choices) {
      words.emplace_back(word);
      values.push_back(meaning);
      if (meaning == value) now = word;
    }
    auto set = [&value, values](std::size_t chosen) { value = values[chosen]; };
    return add_words(name, std::move(words), set, help).default_text(now);
  }

  /// One of these words, of which `set` is told the place.
  option add_words(const std::string& name, std::vector<std::string> words,
                   std::function<void(std::size_t)> set, const std::string& help);

  parsed parse(int argc, char** argv);
  /// Of the program.
  std::string name() const;

 private:
  friend class json_option;

  std::unique_ptr<CLI::App> app_;
};

/// `--json [FILE]`: figures for machines, in FILE or, without one, on standard output; the readable
/// report then goes to standard error. Rank 0 alone opens and writes; what that comes to is for the
/// others to be told.
class json_option {
 public:
  void add_to(command_line& options);
  bool given() const { return option_->given(); }
  const std::string& path() const { return path_; }
  /// Where the readable report goes.
  std::FILE* readable() const { return given() && path_.empty() ? stderr : stdout; }

  /// False when the file cannot be opened.
  bool open_file();
  /// False when the disk is full.
  bool write_here(const nlohmann::ordered_json& figures);
  refusal failure() const { return {1, "cannot write the figures to " + path_}; }

 private:
  std::optional<option> option_;
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace apps
