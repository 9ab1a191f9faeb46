// SPDX-License-Identifier: Apache-2.0
#include "common/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <compiled_json.hpp>

namespace apps {

namespace {

/// CLI::Range lets "nan" through, which lies in no range.
CLI::Validator number_between(double least, double most) {
  CLI::Validator in_range = CLI::Range(least, most);
  in_range.operation([in_range](std::string& text) {
    double value = 0;
    const bool is_nan = CLI::detail::lexical_cast(text, value) && std::isnan(value);
    return is_nan ? text + " is no number" : in_range(text);
  });
  return in_range;
}

/// A number or an option in the place of a file's name is one that was forgotten.
CLI::Validator is_file_name() {
  return {[](std::string& text) {
            const bool is_number =
                !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            if (!is_number && text.rfind('-', 0) != 0) return std::string();
            return "takes the name of a file, not " + text + "; write ./" + text +
                   " for one of that name";
          },
          ""};
}

}  // namespace

option& option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}
option& option::default_text(const std::string& text) {
  option_->default_str(text);
  return *this;
}
option& option::excludes(const std::string& other) {
  option_->excludes(other);
  return *this;
}
bool option::given() const { return static_cast<bool>(*option_); }

command_line::command_line(const std::string& description, const std::string& program)
    : app_(std::make_unique<CLI::App>(description, program)) {}
command_line::~command_line() = default;

template <class Number>
option& number_option<Number>::between(Number least, Number most) {
  if constexpr (std::is_floating_point_v<Number>) {
    option_->check(number_between(least, most));
  } else {
    option_->check(CLI::Range(least, most));
  }
  return *this;
}
template class number_option<int>;
template class number_option<unsigned>;
template class number_option<unsigned long>;
template class number_option<double>;

template <class Number>
number_option<Number> command_line::add(const std::string& name, Number& value,
                                        const std::string& help) {
  return number_option<Number>(app_->add_option(name, value, help)->capture_default_str());
}
template number_option<int> command_line::add(const std::string&, int&, const std::string&);
template number_option<unsigned> command_line::add(const std::string&, unsigned&,
                                                   const std::string&);
template number_option<unsigned long> command_line::add(const std::string&, unsigned long&,
                                                        const std::string&);
template number_option<double> command_line::add(const std::string&, double&, const std::string&);

template <class Number>
number_option<Number> command_line::add(const std::string& name, std::optional<Number>& value,
                                        const std::string& help) {
  return number_option<Number>(app_->add_option(name, value, help));
}
template number_option<unsigned> command_line::add(const std::string&, std::optional<unsigned>&,
                                                   const std::string&);

option command_line::add(const std::string& name, std::string& value, const std::string& help) {
  return option(app_->add_option(name, value, help)->capture_default_str());
}
option command_line::add_flag(const std::string& name, bool& value, const std::string& help) {
  return option(app_->add_flag(name, value, help));
}

option command_line::add_words(const std::string& name, std::vector<std::string> words,
                               std::function<void(std::size_t)> set, const std::string& help) {
  option added(app_->add_option_function<std::string>(
      name,
      [words, set](const std::string& word) {
        set(static_cast<std::size_t>(std::ranges::find(words, word) - words.begin()));
      },
      help));
  return added.one_of(words);
}

parsed command_line::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return {0, app_->help()};
    return {2, name() + ": " + e.what() + "\n"};
  }
}

std::string command_line::name() const { return app_->get_name(); }

void json_option::add_to(command_line& options) {
  option_ = option(options.app_->add_option("--json", path_, "Write the figures as JSON too")
                       ->expected(0, 1)
                       ->check(is_file_name())
                       ->option_text("[FILE]"));
}

bool json_option::open_file() {
  file_ = std::fopen(path_.c_str(), "w");
  return file_ != nullptr;
}

bool json_option::write_here(const nlohmann::ordered_json& figures) {
  std::FILE* out = file_ != nullptr ? file_ : stdout;
  const std::string text = figures.dump(2) + "\n";
  bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  written = std::fflush(out) == 0 && written;
  if (file_ != nullptr) written = std::fclose(std::exchange(file_, nullptr)) == 0 && written;
  return written;
}

}  // namespace apps
