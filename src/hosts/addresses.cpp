// SPDX-License-Identifier: Apache-2.0
#include "hosts/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

const sockaddr_in& v4(const address& a) { return reinterpret_cast<const sockaddr_in&>(a.bytes); }
const sockaddr_in6& v6(const address& a) { return reinterpret_cast<const sockaddr_in6&>(a.bytes); }

address address_of(const sockaddr* from) {
  address a;
  a.size = from->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&a.bytes, from, a.size);
  return a;
}

}  // namespace

bool address::is_loopback() const {
  if (family() == AF_INET) return ntohl(v4(*this).sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
}

int address::port() const {
  return ntohs(family() == AF_INET ? v4(*this).sin_port : v6(*this).sin6_port);
}

void address::set_port(int port) {
  const auto number = htons(static_cast<std::uint16_t>(port));
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(bytes).sin_port = number;
  } else {
    reinterpret_cast<sockaddr_in6&>(bytes).sin6_port = number;
  }
}

std::string address::text() const {
  char name[INET6_ADDRSTRLEN] = "";
  const bool is_v4 = family() == AF_INET;
  const void* number = is_v4 ? static_cast<const void*>(&v4(*this).sin_addr) : &v6(*this).sin6_addr;
  if (inet_ntop(family(), number, name, sizeof name) == nullptr) return "?";
  return (is_v4 ? name : '[' + std::string(name) + ']') + ':' + std::to_string(port());
}

std::optional<address> address_from_text(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  const bool is_v6 = host.size() > 1 && host.front() == '[' && host.back() == ']';
  if (is_v6) host = host.substr(1, host.size() - 2);
  const std::string name(host);
  address a;
  if (is_v6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    if (inet_pton(AF_INET6, name.c_str(), &in.sin6_addr) != 1) return std::nullopt;
    a = address_of(reinterpret_cast<const sockaddr*>(&in));
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    if (inet_pton(AF_INET, name.c_str(), &in.sin_addr) != 1) return std::nullopt;
    a = address_of(reinterpret_cast<const sockaddr*>(&in));
  }
  a.set_port(port);
  return a;
}

namespace {

std::vector<address> all_addresses_of_host() {
  ifaddrs* all = nullptr;
  std::vector<address> found;
  if (getifaddrs(&all) != 0) return found;
  for (const bool loopback : {false, true}) {
    for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
      const int family = i->ifa_addr->sa_family;
      if (family != AF_INET && family != AF_INET6) continue;
      const address a = address_of(i->ifa_addr);
      const bool is_of_link = family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(a).sin6_addr);
      if (!is_of_link && a.is_loopback() == loopback) found.push_back(a);
    }
  }
  freeifaddrs(all);
  return found;
}

constexpr const char* network_variable = "SOJOURN_NETWORK";

std::optional<network> wanted_network() {
  const char* text = std::getenv(network_variable);
  if (text == nullptr) return std::nullopt;
  const std::optional<network> wanted = network_from_text(text);
  if (!wanted)
    throw error("--network takes a network such as 10.1.0.0/16 or fd00:1::/64, not '" +
                printable(text) + "'");
  return wanted;
}

}  // namespace

bool network::has(const address& a) const {
  if (a.family() != begins.family()) return false;
  const auto bytes = [](const address& of) {
    return of.family() == AF_INET ? reinterpret_cast<const unsigned char*>(&v4(of).sin_addr)
                                  : reinterpret_cast<const unsigned char*>(&v6(of).sin6_addr);
  };
  for (int bit = 0; bit < bits; ++bit) {
    const int mask = 0x80 >> bit % 8;
    if (((bytes(a)[bit / 8] ^ bytes(begins)[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

std::optional<network> network_from_text(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view host = text.substr(0, slash);
  const bool is_v6 = host.find(':') != host.npos;
  const auto begins =
      address_from_text(is_v6 ? '[' + std::string(host) + "]:0" : std::string(host) + ":0");
  const int most = is_v6 ? 128 : 32;
  const std::optional<long> bits =
      slash == text.size() ? most : parse_number(text.substr(slash + 1));
  if (!begins || !bits || *bits < 0 || *bits > most) return std::nullopt;
  return network{*begins, static_cast<int>(*bits)};
}

std::vector<address> addresses_of_host() {
  const std::optional<network> wanted = wanted_network();
  std::vector<address> found = all_addresses_of_host();
  if (!wanted) return found;
  std::erase_if(found, [&](const address& a) { return !wanted->has(a); });
  if (found.empty())
    throw error("host " + host_name() + " has no address in the network " +
                std::getenv(network_variable) +
                ", which --network says: `ip address` shows those that it has");
  return found;
}

address address_for_others(int socket) {
  if (!wanted_network()) return own_end(socket);
  return addresses_of_host().front();
}

namespace {

/// -1, and errno, when it cannot.
int listen_at(int port) {
  // One socket for both families, where the system has IPv6.
  for (const int family : {AF_INET6, AF_INET}) {
    const int s = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) continue;
    const int off = 0;
    const int on = 1;
    address any;
    any.bytes.ss_family = static_cast<sa_family_t>(family);
    any.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    any.set_port(port);
    if (family == AF_INET6) (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    // A port of the last job's, whose connections the system still remembers.
    if (port != 0) (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s, any.get(), any.size) == 0 && listen(s, SOMAXCONN) == 0) return s;
    const int reason = errno;
    close(s);
    errno = reason;
  }
  return -1;
}

struct port_range {
  long first;
  long last;
};

/// Port 0, which lets the system choose, where the user has not said which.
port_range wanted_ports() {
  const char* text = std::getenv("SOJOURN_PORTS");
  if (text == nullptr) return {0, 0};
  const std::string_view range = text;
  const std::size_t dash = range.find('-');
  const std::optional<long> first = parse_number(range.substr(0, dash));
  const std::optional<long> last =
      dash == range.npos ? first : parse_number(range.substr(dash + 1));
  if (!first || !last || *first < 1 || *last > 65535 || *first > *last)
    throw error("--ports takes a range of ports, such as 7000-7015, not '" + printable(text) + "'");
  return {*first, *last};
}

}  // namespace

listener listen_anywhere() {
  const port_range ports = wanted_ports();
  for (long port = ports.first; port <= ports.last; ++port) {
    const int s = listen_at(static_cast<int>(port));
    if (s >= 0) return {s, own_end(s).port()};
    if (errno != EADDRINUSE) break;
  }
  throw error("host " + host_name() + " cannot open a port for the other hosts" +
              (ports.first == 0 ? "" : " at " + std::string(std::getenv("SOJOURN_PORTS"))) + ": " +
              std::strerror(errno));
}

int begin_to_connect(const address& to) {
  const int s = socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (s < 0 || connect(s, to.get(), to.size) == 0 || errno == EINPROGRESS) return s;
  const int reason = errno;
  close(s);
  errno = reason;
  return -1;
}

int connect_failure(int socket) {
  int reason = 0;
  socklen_t size = sizeof reason;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &reason, &size) == 0 ? reason : errno;
}

address own_end(int socket) {
  address a;
  a.size = sizeof a.bytes;
  (void)getsockname(socket, reinterpret_cast<sockaddr*>(&a.bytes), &a.size);
  // A socket of both families sees addresses of IPv4 in the other one's form.
  if (a.family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6(a).sin6_addr)) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = v6(a).sin6_port;
    std::memcpy(&in.sin_addr, reinterpret_cast<const char*>(&v6(a).sin6_addr) + 12, 4);
    a = address_of(reinterpret_cast<const sockaddr*>(&in));
  }
  return a;
}

}  // namespace sojourn::detail
