// SPDX-License-Identifier: Apache-2.0
#include "hosts/addresses.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "sojourn/errors.hpp"

namespace sojourn::detail {
namespace {

bool has(const char* network, const char* host) {
  return network_from_text(network).value().has(address_from_text(host).value());
}

TEST(a_network, has_the_addresses_that_begin_with_its_bits) {
  EXPECT_TRUE(has("10.1.0.0/16", "10.1.200.3:1"));
  EXPECT_FALSE(has("10.1.0.0/16", "10.2.0.1:1"));
  EXPECT_TRUE(has("10.1.4.0/22", "10.1.7.255:1"));
  EXPECT_FALSE(has("10.1.4.0/22", "10.1.8.0:1"));
  EXPECT_TRUE(has("0.0.0.0/0", "192.168.1.1:1"));
  EXPECT_TRUE(has("10.1.2.3", "10.1.2.3:1"));
  EXPECT_FALSE(has("10.1.2.3", "10.1.2.2:1"));
  EXPECT_TRUE(has("fd00:1::/64", "[fd00:1::7]:1"));
  EXPECT_FALSE(has("fd00:1::/64", "[fd00:1:0:1::7]:1"));
  EXPECT_FALSE(has("0.0.0.0/0", "[fd00::1]:1"));
}

TEST(a_network, is_refused_when_it_is_none) {
  for (const char* text : {"", "/", "10.1.0.0/33", "10.1.0.0/x", "10.1.0/16", "fd00::/129",
                           "10.1.0.0/-1", "eth0", "10.1.0.0/16/1"})
    EXPECT_FALSE(network_from_text(text)) << text;
}

TEST(addresses_of_a_host, are_those_of_the_wanted_network) {
  ASSERT_FALSE(addresses_of_host().empty());
  setenv("SOJOURN_NETWORK", "127.0.0.0/8", 1);
  for (const address& a : addresses_of_host()) EXPECT_TRUE(a.is_loopback()) << a.text();
  setenv("SOJOURN_NETWORK", "203.0.113.0/24", 1);  // for documentation, so of no host
  EXPECT_THROW(addresses_of_host(), error);
  setenv("SOJOURN_NETWORK", "eth0", 1);
  EXPECT_THROW(addresses_of_host(), error);
  unsetenv("SOJOURN_NETWORK");
}

TEST(a_listener, has_the_first_free_port_of_those_that_are_allowed) {
  // Some that are free now.
  const listener any = listen_anywhere();
  close(any.socket);
  const std::string port = std::to_string(any.port);
  setenv("SOJOURN_PORTS", (port + '-' + port).c_str(), 1);
  const listener first = listen_anywhere();
  EXPECT_EQ(first.port, any.port);
  EXPECT_THROW(listen_anywhere(), error) << "the only one is taken";
  close(first.socket);
  setenv("SOJOURN_PORTS", port.c_str(), 1);
  const listener again = listen_anywhere();
  EXPECT_EQ(again.port, any.port);
  close(again.socket);
  for (const char* text : {"", "x", "0", "0-10", "10-9", "1-65536", "1-2-3", "-5"}) {
    setenv("SOJOURN_PORTS", text, 1);
    EXPECT_THROW(listen_anywhere(), error) << text;
  }
  unsetenv("SOJOURN_PORTS");
}

}  // namespace
}  // namespace sojourn::detail
