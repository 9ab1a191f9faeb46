// SPDX-License-Identifier: Apache-2.0
#include "site/card.hpp"

#include <algorithm>

#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "job/cores.hpp"
#include "site/started_together.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

constexpr std::string_view greeting = "sojourn-1";

/// The parts of a text between `separator`s.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::string to_text(const card& card) {
  std::string text(greeting);
  for (const std::string& field :
       {card.host, card.host_name, std::to_string(card.process), card.command, card.cores})
    text += ';' + field;
  // If the host has so many ranges of cores that they do not fit, cuts some off. The cards of its
  // other processes tell some, too.
  if (text.size() > started_together::word_max)
    text.resize(text.rfind(',', started_together::word_max));
  return text;
}

card card_from_text(std::string_view text) {
  const std::vector<std::string_view> fields = split(text, ';');
  constexpr std::size_t field_count = 6;
  const std::optional<long> process =
      fields.size() == field_count ? parse_number(fields[3]) : std::nullopt;
  if (!process || fields[0] != greeting || *process < 1)
    throw error(
        "what a process says that the launcher has started with this one is not what this version "
        "of Sojourn says: all of them must run one program");
  return {.host = std::string(fields[1]),
          .host_name = printable(std::string(fields[2])),
          .process = *process,
          .cores = std::string(fields[5]),
          .command = std::string(fields[4])};
}

std::string to_text(const invitation& invitation) {
  std::string text = invitation.secret + ';';
  for (std::size_t i = 0; i < invitation.head.size(); ++i) {
    const std::string next = (i == 0 ? "" : ",") + invitation.head[i].text();
    if (text.size() + next.size() > started_together::word_max) break;
    text += next;
  }
  return text;
}

invitation invitation_from_text(std::string_view text) {
  const std::size_t end = std::min(text.find(';'), text.size());
  invitation read{std::string(text.substr(0, end)), {}};
  if (end == text.size()) return read;
  for (std::string_view word : split(text.substr(end + 1), ',')) {
    if (const auto a = address_from_text(word)) read.head.push_back(*a);
  }
  return read;
}

std::vector<host_of_cards> hosts_of(const std::vector<card>& cards) {
  std::vector<host_of_cards> hosts;
  std::vector<std::string_view> keys;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const auto known = std::find(keys.begin(), keys.end(), cards[i].host);
    const auto which = static_cast<std::size_t>(known - keys.begin());
    if (known == keys.end()) {
      keys.push_back(cards[i].host);
      hosts.push_back({cards[i].host_name, {}});
    }
    hosts[which].processes.push_back(static_cast<int>(i));
  }
  return hosts;
}

std::vector<int> cores_from_text(std::string_view text) {
  std::vector<int> cores;
  for (std::string_view part : split(text, ',')) {
    const std::size_t dash = std::min(part.find('-'), part.size());
    const std::optional<long> first = parse_number(part.substr(0, dash));
    const std::optional<long> last =
        dash == part.size() ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *first < 0) continue;
    for (long core = *first; core <= *last && core < cores_max; ++core)
      cores.push_back(static_cast<int>(core));
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::string cores_to_text(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t end = i + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cores[i]);
    if (end - i > 1) text += '-' + std::to_string(cores[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace sojourn::detail
