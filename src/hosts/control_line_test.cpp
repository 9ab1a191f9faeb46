// SPDX-License-Identifier: Apache-2.0
#include "hosts/control_line.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "hosts/plan_record.hpp"
#include "hosts/starting_line.hpp"
#include "sojourn/errors.hpp"

using namespace sojourn;
using namespace sojourn::detail;

namespace {

struct two_ends {
  two_ends() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  }
  int fds[2];
  seal_keys one{{1}, {2}};
  seal_keys other{{2}, {1}};
};

TEST(control_line, carries_whole_messages_in_order_however_long_they_are) {
  two_ends ends;
  control_line from(ends.fds[0], ends.one);
  control_line to(ends.fds[1], ends.other);
  std::vector<std::string> sent;
  for (std::size_t length : {0u, 1u, 7u, 1000u, 3'000'000u, 5u}) {
    sent.emplace_back(length, static_cast<char>('a' + sent.size()));
    from.send(control::report, record_writer().text(sent.back()));
  }
  std::vector<std::string> came;
  for (int i = 0; i < 10'000 && came.size() < sent.size(); ++i) {
    ASSERT_TRUE(from.move());
    ASSERT_TRUE(to.move());
    while (auto m = to.next()) {
      EXPECT_EQ(m->kind, control::report);
      record_reader fields(m->fields);
      came.push_back(fields.text());
      EXPECT_TRUE(fields.is_sound() && fields.at_end());
    }
  }
  EXPECT_EQ(came, sent);
  EXPECT_FALSE(from.has_unsent());
}

TEST(control_line, gives_what_has_come_before_its_end) {
  two_ends ends;
  control_line to(ends.fds[1], ends.other);
  {
    control_line from(ends.fds[0], ends.one);
    from.send(control::goodbye);
    from.send(control::stop);
  }
  EXPECT_FALSE(to.move());
  EXPECT_TRUE(to.has_ended());
  EXPECT_EQ(to.why(), "it was closed");
  EXPECT_EQ(to.next()->kind, control::goodbye);
  EXPECT_EQ(to.next()->kind, control::stop);
  EXPECT_FALSE(to.next());
  to.send(control::report);  // nobody is there, and it does no harm
}

TEST(control_line, ends_where_a_message_would_be_longer_than_any) {
  two_ends ends;
  control_line to(ends.fds[1], ends.other);
  unsigned char noise[16] = {255, 255, 255, 255, 1, 2, 3};
  const iovec all{noise, sizeof noise};
  ASSERT_EQ(sealed_socket(ends.fds[0], ends.one).send({&all, 1}),
            static_cast<ssize_t>(sizeof noise));
  EXPECT_TRUE(to.move());
  EXPECT_FALSE(to.next());
  EXPECT_TRUE(to.has_ended());
  close(ends.fds[0]);
}

TEST(control_line, ends_where_what_comes_is_not_what_was_sent) {
  two_ends ends;
  control_line to(ends.fds[1], ends.other);
  const unsigned char noise[40] = {1, 0, 0, 0, 1, 2, 3};
  ASSERT_EQ(write(ends.fds[0], noise, sizeof noise), static_cast<ssize_t>(sizeof noise));
  EXPECT_FALSE(to.move());
  EXPECT_FALSE(to.next());
  EXPECT_EQ(to.why(), "what came over it was not what the other end has sent");
  close(ends.fds[0]);
}

TEST(a_record, that_ends_too_early_reads_as_nothing) {
  const std::string bytes = record_writer().number(7).text("seven").bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    record_reader fields(std::string_view(bytes).substr(0, length));
    (void)fields.number();
    EXPECT_EQ(fields.text(), "");
    EXPECT_FALSE(fields.is_sound()) << length;
    EXPECT_EQ(fields.number(), 0u);
  }
  const std::string longest = record_writer().number(~std::uint64_t{0}).bytes();
  record_reader fields(longest);
  EXPECT_EQ(fields.text(), "");
  EXPECT_FALSE(fields.is_sound());
}

TEST(a_plan, arrives_as_it_was_sent) {
  host_plan plan{.job = {.rank_count = 6,
                         .command = {"./a", "two words", ""},
                         .parts = {{2, {"./a", "1"}}, {4, {"./b"}}},
                         .bind = binding::off,
                         .label = true,
                         .share_heap = false,
                         .hosts = "a:3,b:3",
                         .agent = "rsh",
                         .restore = "sums",
                         .watchdog_seconds = 0.25,
                         .grace_seconds = 3},
                 .here = {3, 3},
                 .canary = 0x1234,
                 .folder = "/a folder",
                 .settings = {{"PATH", "/bin"}, {"SOJOURN_VIA", "x=rpc"}},
                 .restored = {.ranks = 6, .generation = 2},
                 .restored_ahead_ns = 9};
  record_writer bytes;
  put(bytes, plan);
  record_reader fields(bytes.bytes());
  const host_plan came = read_host_plan(fields);
  EXPECT_TRUE(fields.is_sound() && fields.at_end());
  EXPECT_EQ(came.job.rank_count, 6);
  EXPECT_EQ(came.restored_ahead_ns, 9u);
  EXPECT_EQ(came.restored, plan.restored);
  EXPECT_EQ(came.job.command, plan.job.command);
  ASSERT_EQ(came.job.parts.size(), 2u);
  EXPECT_EQ(came.job.parts[1].rank_count, 4);
  EXPECT_EQ(came.job.parts[0].command, plan.job.parts[0].command);
  EXPECT_EQ(came.job.bind, binding::off);
  EXPECT_TRUE(came.job.label);
  EXPECT_FALSE(came.job.share_heap);
  EXPECT_EQ(came.job.hosts, "a:3,b:3");
  EXPECT_EQ(came.job.agent, "rsh");
  EXPECT_EQ(came.job.watchdog_seconds, 0.25);
  EXPECT_EQ(came.job.grace_seconds, 3);
  EXPECT_EQ(came.here.first, 3);
  EXPECT_EQ(came.here.count, 3);
  EXPECT_EQ(came.canary, 0x1234u);
  EXPECT_EQ(came.folder, plan.folder);
  EXPECT_EQ(came.settings, plan.settings);
}

TEST(an_introduction, and_what_a_rank_waits_for_arrive_as_they_were_sent) {
  rank_introduction rank{};
  std::snprintf(rank.program, sizeof rank.program, "program");
  rank.part = 1;
  rank.image = 2;
  rank.stack_needs[0] = 10;
  rank.stack_needs[1] = 11;
  rank.stack_needs[2] = 12;
  rank.wire_fingerprint = 3;
  rank.region_bytes = 4;
  rank.stack_bytes = 5;
  rank.main_stack_bytes = 6;
  rank.page_bytes = 7;
  rank_view view;
  view.file = "/a/program";
  view.condition = rank_condition::computing;
  view.pid = 77;
  view.in_system_call = true;
  view.report.fiber_count = 2;
  view.report.fibers[1].waited_ns = 99;
  record_writer bytes;
  put(bytes, rank);
  put(bytes, view);
  record_reader fields(bytes.bytes());
  const rank_introduction rank_came = read_introduction(fields);
  const rank_view view_came = read_rank_view(fields);
  EXPECT_TRUE(fields.is_sound() && fields.at_end());
  EXPECT_STREQ(rank_came.program, "program");
  EXPECT_EQ(rank_came.part, 1u);
  EXPECT_EQ(rank_came.image, 2u);
  EXPECT_EQ(rank_came.stack_needs[0], 10u);
  EXPECT_EQ(rank_came.stack_needs[1], 11u);
  EXPECT_EQ(rank_came.stack_needs[2], 12u);
  EXPECT_EQ(rank_came.wire_fingerprint, 3u);
  EXPECT_EQ(rank_came.region_bytes, 4u);
  EXPECT_EQ(rank_came.stack_bytes, 5u);
  EXPECT_EQ(rank_came.main_stack_bytes, 6u);
  EXPECT_EQ(rank_came.page_bytes, 7u);
  EXPECT_EQ(view_came.file, "/a/program");
  EXPECT_EQ(view_came.condition, rank_condition::computing);
  EXPECT_EQ(view_came.pid, 77);
  EXPECT_TRUE(view_came.in_system_call);
  EXPECT_EQ(view_came.report.fibers[1].waited_ns, 99u);
}

TEST(a_starting_line, is_read_and_nothing_behind_it) {
  starting_line line{.secret = new_secret(), .host = 3, .head = {}};
  for (const char* a : {"10.1.2.3:4567", "[fd00::1]:89", "127.0.0.1:1"})
    line.head.push_back(*address_from_text(a));
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const std::string text = to_text(line) + "input";
  ASSERT_EQ(write(pipe_ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  const starting_line came = read_starting_line(pipe_ends[0]);
  EXPECT_EQ(came.secret, line.secret);
  EXPECT_EQ(came.host, 3u);
  ASSERT_EQ(came.head.size(), 3u);
  EXPECT_EQ(came.head[1].text(), "[fd00::1]:89");
  char rest[8] = "";
  EXPECT_EQ(read(pipe_ends[0], rest, sizeof rest), 5);
  EXPECT_STREQ(rest, "input");
  close(pipe_ends[1]);
  EXPECT_THROW((void)read_starting_line(pipe_ends[0]), error);
  close(pipe_ends[0]);
}

TEST(an_address, is_read_as_it_is_written) {
  for (const char* text : {"10.0.0.2:4711", "[fd00::2]:65535", "127.0.0.1:0", "[::1]:80"}) {
    const std::optional<address> a = address_from_text(text);
    ASSERT_TRUE(a) << text;
    EXPECT_EQ(a->text(), text);
  }
  EXPECT_TRUE(address_from_text("[::1]:80")->is_loopback());
  EXPECT_TRUE(address_from_text("127.8.0.1:80")->is_loopback());
  EXPECT_FALSE(address_from_text("10.0.0.1:80")->is_loopback());
  for (const char* text : {"", ":", "10.0.0.1", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1",
                           "10.0.0.256:1", "[::1:2", "host:22", "::1:22"})
    EXPECT_FALSE(address_from_text(text)) << text;
}

}  // namespace
