// SPDX-License-Identifier: Apache-2.0
#include "hosts/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

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

std::vector<address> addresses_of_host() {
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

listener listen_anywhere() {
  // One socket for both families, where the system has IPv6.
  for (const int family : {AF_INET6, AF_INET}) {
    const int s = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) continue;
    const int off = 0;
    address any;
    any.bytes.ss_family = static_cast<sa_family_t>(family);
    any.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (family == AF_INET6) (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(s, any.get(), any.size) == 0 && listen(s, SOMAXCONN) == 0)
      return {s, own_end(s).port()};
    const int reason = errno;
    close(s);
    errno = reason;
  }
  throw error(std::string("no port can be opened for the other hosts: ") + std::strerror(errno));
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
