// SPDX-License-Identifier: Apache-2.0
#include "hosts/starting_line.hpp"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <sstream>

#include "hosts/key.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

constexpr const char* greeting = "sojourn-agent-1";
constexpr std::size_t longest = 16 << 10;

}  // namespace

std::string to_text(const starting_line& line) {
  std::string text = greeting;
  text += ' ' + (line.secret_word.empty() ? to_hex(line.secret) : line.secret_word);
  text += ' ' + std::to_string(line.host);
  for (const address& a : line.head) text += ' ' + a.text();
  return text + '\n';
}

starting_line read_starting_line(int descriptor) {
  std::string text;
  for (char c = 0; text.size() < longest;) {
    const ssize_t n = read(descriptor, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || c == '\n') break;
    text += c;
  }
  std::istringstream words(text);
  std::string first;
  starting_line line{};
  words >> first >> line.secret_word >> line.host;
  for (std::string word; words >> word;) {
    if (const std::optional<address> a = address_from_text(word)) line.head.push_back(*a);
  }
  if (first != greeting || line.secret_word.empty() || line.head.empty()) {
    throw error(
        "an agent is started by `sojourn run --hosts`, which tells it over standard input what to "
        "do; what has come there is nothing of that kind");
  }
  const std::optional<job_secret> told = secret_from_hex(line.secret_word);
  line.secret = told ? *told : learn_secret(line.secret_word);
  return line;
}

}  // namespace sojourn::detail
