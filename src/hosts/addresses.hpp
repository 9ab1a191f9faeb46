// SPDX-License-Identifier: Apache-2.0
// Addresses of this host and of others, as numbers and as text, and sockets at them.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sojourn::detail {

/// Of IPv4 or IPv6, with a port.
struct address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  int family() const { return bytes.ss_family; }
  bool is_loopback() const;
  int port() const;
  void set_port(int port);
  /// "10.0.0.2:4711", "[fd00::2]:4711".
  std::string text() const;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

std::optional<address> address_from_text(std::string_view text);

/// The addresses of IPv4 or IPv6 that begin with the same bits.
struct network {
  address begins;
  int bits = 0;

  bool has(const address& a) const;
};

/// "10.1.0.0/16", "fd00:1::/64".
std::optional<network> network_from_text(std::string_view text);

/// Where this host can be reached: the addresses of its networks that are up, those of the loopback
/// last. None of one link only, which would mean another thing elsewhere. Where SOJOURN_NETWORK
/// names a network, only those in it; throws sojourn::error when there is none.
std::vector<address> addresses_of_host();

/// By which address other hosts reach this one, which has connected `socket` to the head of the
/// job: by the same as the head, or by that in the network of SOJOURN_NETWORK. Throws
/// sojourn::error.
address address_for_others(int socket);

/// A socket that listens on all networks, and does not block: at a port that the system chooses, or
/// at the first free one of SOJOURN_PORTS. Throws sojourn::error.
struct listener {
  int socket;
  int port;
};
listener listen_anywhere();

/// A socket that does not block, and begins to connect. -1, and errno, when it cannot.
int begin_to_connect(const address& to);
/// 0 when the socket, which has become writable, is connected; else why not.
int connect_failure(int socket);
/// By which address of this host a connected socket reaches the other end.
address own_end(int socket);

}  // namespace sojourn::detail
