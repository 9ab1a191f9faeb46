// SPDX-License-Identifier: Apache-2.0
#include "site/card.hpp"

#include <gtest/gtest.h>

#include <random>

#include "site/started_together.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {
namespace {

card card_on(const std::string& host, long process = 1) {
  return {
      .host = host, .host_name = "host-" + host, .process = process, .cores = "0", .command = "c"};
}

TEST(a_card, is_read_as_it_was_written) {
  const card written{
      .host = "1234", .host_name = "node7", .process = 4711, .cores = "0-3,8", .command = "99"};
  const card read = card_from_text(to_text(written));
  EXPECT_EQ(read.host, written.host);
  EXPECT_EQ(read.host_name, written.host_name);
  EXPECT_EQ(read.process, written.process);
  EXPECT_EQ(read.cores, written.cores);
  EXPECT_EQ(read.command, written.command);
}

TEST(a_card, fits_into_what_a_launcher_passes_on) {
  card many = card_on("1");
  many.cores.clear();
  for (int core = 0; core < 2000; core += 2)
    many.cores += (core == 0 ? "" : ",") + std::to_string(core);
  const std::string text = to_text(many);
  EXPECT_LE(text.size(), started_together::word_max);
  const std::vector<int> cores = cores_from_text(card_from_text(text).cores);
  EXPECT_GT(cores.size(), 100u);
  for (std::size_t i = 0; i < cores.size(); ++i) EXPECT_EQ(cores[i], static_cast<int>(2 * i));
}

TEST(a_card, is_refused_when_it_is_something_else) {
  std::mt19937 random(1);
  const std::string good = to_text(card_on("1"));
  for (const std::string text : {"", ";;;;;", "sojourn-1;a;b;0;c;d", "sojourn-2;a;b;1;c;d",
                                 "sojourn-1;a;b;x;c;d", "sojourn-1;a;b;1;c"})
    EXPECT_THROW(card_from_text(text), error) << text;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = good;
    for (int changes = 0; changes < 3; ++changes)
      text[random() % text.size()] = static_cast<char>(random());
    try {
      (void)card_from_text(text);
    } catch (const error&) {
    }
  }
}

TEST(an_invitation, is_read_as_it_was_written_with_the_addresses_that_fit) {
  invitation written{"key:" + std::string(64, 'a'), {}};
  for (int i = 0; i < 60; ++i)
    written.head.push_back(address_from_text("[fd00:1234:5678:9abc:def0:1234:5678:" +
                                             std::to_string(1000 + i) + "]:65000")
                               .value());
  const std::string text = to_text(written);
  EXPECT_LE(text.size(), started_together::word_max);
  EXPECT_EQ(text.find_first_of(" \n\t"), text.npos);
  const invitation read = invitation_from_text(text);
  EXPECT_EQ(read.secret, written.secret);
  ASSERT_GT(read.head.size(), 10u);
  for (std::size_t i = 0; i < read.head.size(); ++i)
    EXPECT_EQ(read.head[i].text(), written.head[i].text());
  EXPECT_TRUE(invitation_from_text("-").head.empty());
}

TEST(hosts, follow_from_cards_in_the_order_of_their_first_processes) {
  const std::vector<host_of_cards> hosts =
      hosts_of({card_on("b"), card_on("a"), card_on("b"), card_on("c"), card_on("a")});
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].name, "host-b");
  EXPECT_EQ(hosts[0].processes, (std::vector<int>{0, 2}));
  EXPECT_EQ(hosts[1].processes, (std::vector<int>{1, 4}));
  EXPECT_EQ(hosts[2].processes, (std::vector<int>{3}));
}

TEST(cores, are_listed_as_the_kernel_lists_them) {
  EXPECT_EQ(cores_to_text({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(cores_to_text({}), "");
  EXPECT_EQ(cores_from_text("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(cores_from_text("2,1-2"), (std::vector<int>{1, 2}));
  EXPECT_TRUE(cores_from_text("").empty());
  EXPECT_TRUE(cores_from_text("-1,x,5-").empty());
  EXPECT_LE(cores_from_text("0-99999999999").size(), 65536u);
}

}  // namespace
}  // namespace sojourn::detail
