// SPDX-License-Identifier: Apache-2.0
// Which hosts a job runs on, and how many of its ranks on each: what the user says with --hosts or
// in a file. Whether there are such hosts is not looked at.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "base/check.hpp"
#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/jobs/hosts.hpp"

namespace sojourn::detail {

namespace {

/// As many as a job can have in all.
constexpr long ranks_of_host_max = 1024;
constexpr std::string_view blanks = " \t\r\n\v\f";

/// Where the user has written what is read, for the errors: "--hosts", "hosts.txt:3".
struct place {
  std::string text;

  [[noreturn]] void refuse(const std::string& why) const { throw error(text + ": " + why); }
};

std::string quoted(std::string_view text) { return "'" + printable(text) + "'"; }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Not isalnum, whose answer depends on the locale.
bool may_be_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_' || c == '%';
}

bool may_be_in_address(char c) { return may_be_in_name(c) || c == ':'; }

/// Where the host begins in "user@host". A user's name may have an '@' of its own.
std::size_t begin_of_host(std::string_view name) {
  const std::size_t at = name.rfind('@');
  return at == name.npos ? 0 : at + 1;
}

/// Without the user, and with small letters: equal for what is the same host.
std::string host_alone(std::string_view name) {
  std::string host(name.substr(begin_of_host(name)));
  for (char& c : host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return host;
}

// --- One host

int parse_count(std::string_view text, std::string_view all, const place& where) {
  const std::optional<long> count = parse_number(text);
  if (!count || *count < 1 || *count > ranks_of_host_max) {
    where.refuse(quoted(all) + " should say how many ranks the host has, but " + quoted(text) +
                 " is no number from 1 to " + std::to_string(ranks_of_host_max) +
                 ": write one, as in a:4, or the name alone");
  }
  return static_cast<int>(*count);
}

bool is_ipv6(std::string_view text) {
  const std::size_t zone = std::min(text.find('%'), text.size());  // fe80::1%eth0
  in6_addr address;
  return inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &address) == 1 &&
         text.size() != zone + 1 && std::all_of(text.begin(), text.end(), may_be_in_address);
}

/// The name in "name", "name:4", "[address]:4"; `behind`: what follows it.
std::string parse_name(std::string_view text, std::string_view& behind, const place& where) {
  const std::size_t open = text.find('[');
  if (open == text.npos) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    behind = text.substr(colon);
    if (std::count(behind.begin(), behind.end(), ':') > 1) {
      where.refuse(quoted(text) +
                   " has several colons: put an IPv6 address into brackets, as in [::1]:2");
    }
    return std::string(text.substr(0, colon));
  }
  const std::size_t close = text.find(']', open);
  const std::string_view user = text.substr(0, open);
  const std::string_view address =
      close == text.npos ? std::string_view() : text.substr(open + 1, close - open - 1);
  if (close != text.npos) behind = text.substr(close + 1);
  if (!is_ipv6(address) || (!user.empty() && user.back() != '@') ||
      (!behind.empty() && behind[0] != ':')) {
    where.refuse(quoted(text) +
                 " has brackets, which are for an IPv6 address, as in [::1]:2 or user@[::1]: write "
                 "one, or leave them out");
  }
  return std::string(user) + std::string(address);
}

void check_name(std::string_view name, bool is_address, std::string_view all, const place& where) {
  const std::size_t host = begin_of_host(name);
  const std::string_view user = name.substr(0, host == 0 ? 0 : host - 1);
  if (host == name.size() || (host != 0 && user.empty())) {
    where.refuse(quoted(all) + " lacks the name of a " + (host == name.size() ? "host" : "user") +
                 ": write one, as in a, a:4 or user@a:4");
  }
  const std::string_view host_name = name.substr(host);
  if (name[0] == '-' || host_name[0] == '-') {
    where.refuse(quoted(all) +
                 " has a name that begins with '-', which ssh would take for an option: write the "
                 "name of a host");
  }
  const auto may_be_in_user = [](char c) { return may_be_in_name(c) || c == '@'; };
  if (!std::all_of(user.begin(), user.end(), may_be_in_user) ||
      !std::all_of(host_name.begin(), host_name.end(),
                   is_address ? may_be_in_address : may_be_in_name)) {
    where.refuse(quoted(all) +
                 " is not the name of a host, which has letters, digits, and . - _ @ % only: write "
                 "one, as in a, a:4 or user@a:4");
  }
}

/// "name", "name:4", "[address]:4", with no blanks around it.
host_ranks parse_host(std::string_view text, const place& where) {
  std::string_view behind;
  host_ranks host;
  host.name = parse_name(text, behind, where);
  check_name(host.name, text.find('[') != text.npos, text, where);
  host.counted = !behind.empty();
  if (host.counted) host.ranks = parse_count(behind.substr(1), text, where);
  return host;
}

// --- All of them

/// A line of a file, without its comment and not blank.
host_ranks parse_line(std::string_view line, const place& where) {
  constexpr std::string_view slots = "slots=";
  const std::size_t blank = std::min(line.find_first_of(blanks), line.size());
  host_ranks host = parse_host(line.substr(0, blank), where);
  const std::string_view more = trimmed(line.substr(blank));
  if (more.empty()) return host;
  if (more.substr(0, slots.size()) != slots || more.find_first_of(blanks) != more.npos) {
    where.refuse(quoted(more) + " is not understood: write one host in a line, and " +
                 "slots=4 or :4 behind it where it has 4 ranks");
  }
  if (host.counted) {
    where.refuse(quoted(line) +
                 " says twice how many ranks the host has: leave out one of the two");
  }
  host.counted = true;
  host.ranks = parse_count(more.substr(slots.size()), line, where);
  return host;
}

/// As --hosts takes it.
std::string text_of(const host_ranks& host) {
  std::string text = host.name;
  if (text.find(':') != text.npos) text.insert(begin_of_host(text), 1, '[') += ']';
  if (host.counted) text += ':' + std::to_string(host.ranks);
  return text;
}

}  // namespace

}  // namespace sojourn::detail

namespace sojourn {

using namespace detail;

std::vector<host_ranks> parse_hosts(const std::string& list) {
  const place where{"--hosts"};
  if (trimmed(list).empty()) where.refuse("no host is named: write some, as in a:2,b:2");
  std::vector<host_ranks> hosts;
  std::set<std::string> named;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    const std::string_view entry = trimmed(std::string_view(list).substr(begin, comma - begin));
    begin = comma + 1;
    if (entry.empty()) {
      where.refuse(quoted(list) +
                   " has a comma with no host on one side of it: leave it out, or name the host");
    }
    host_ranks host = parse_host(entry, where);
    if (!named.insert(host_alone(host.name)).second) {
      where.refuse("the host " + quoted(host.name) +
                   " is named twice: name it once, with all its ranks, as in a:4");
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::vector<host_ranks> read_hostfile(const std::string& path) {
  const auto refuse_file = [&path](int failure) {
    throw error("the file of hosts " + quoted(path) + " cannot be read: " + std::strerror(failure) +
                "; name one that has a host in each line");
  };
  std::ifstream file(path);
  if (!file) refuse_file(errno);
  std::vector<host_ranks> hosts;
  std::map<std::string, int> line_of;
  errno = 0;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const place where{detail::printable(path) + ":" + std::to_string(++number)};
    const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    host_ranks host = parse_line(text, where);
    const auto [before, is_new] = line_of.emplace(host_alone(host.name), number);
    if (!is_new) {
      where.refuse("the host " + quoted(host.name) + " is named twice, first in line " +
                   std::to_string(before->second) +
                   ": give it one line, with all its ranks, as in a:4");
    }
    hosts.push_back(std::move(host));
  }
  if (file.bad()) refuse_file(errno != 0 ? errno : EIO);  // such as a folder
  if (hosts.empty())
    place{detail::printable(path)}.refuse("no host is named: write one in each line");
  return hosts;
}

std::string hosts_text(const std::vector<host_ranks>& hosts) {
  std::string text;
  for (host_ranks host : hosts) {
    host.counted = true;
    text += (text.empty() ? "" : ",") + text_of(host);
  }
  return text;
}

void share_ranks(std::vector<host_ranks>& hosts, int ranks, bool ranks_given,
                 const std::string& given_as) {
  const auto is_counted = [](const host_ranks& host) { return host.counted; };
  for (host_ranks& host : hosts) {
    if (!host.counted) host.ranks = 1;
  }
  if (!ranks_given) return;
  SOJOURN_CHECK(!hosts.empty() && ranks >= 1, "%d ranks on %zu hosts", ranks, hosts.size());

  if (std::none_of(hosts.begin(), hosts.end(), is_counted)) {
    const auto all = static_cast<std::size_t>(ranks);
    const std::size_t each = all / hosts.size();
    const std::size_t have_one_more = all % hosts.size();
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      hosts[i].ranks = static_cast<int>(each + (i < have_one_more ? 1 : 0));
    }
    if (each == 0) hosts.resize(have_one_more);
    return;
  }

  long sum = 0;
  for (const host_ranks& host : hosts) sum += host.ranks;
  if (sum == ranks) return;
  std::string given = given_as;
  if (given.empty()) {
    given = "--hosts ";
    for (const host_ranks& host : hosts) {
      if (&host != hosts.data()) given += ',';
      given += text_of(host);
    }
  }
  const bool all_are_counted = std::all_of(hosts.begin(), hosts.end(), is_counted);
  throw error("-n " + std::to_string(ranks) + " asks for " + std::to_string(ranks) +
              (ranks == 1 ? " rank" : " ranks") + ", and " + detail::printable(given) + " names " +
              std::to_string(sum) +
              (all_are_counted ? "" : ", one for each host without a number") +
              ": leave one of the two out");
}

}  // namespace sojourn
