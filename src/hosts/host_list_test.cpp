// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "sojourn/errors.hpp"
#include "sojourn/jobs/hosts.hpp"

namespace sojourn {

bool operator==(const host_ranks& a, const host_ranks& b) {
  return a.name == b.name && a.ranks == b.ranks && a.counted == b.counted;
}

void PrintTo(const host_ranks& h, std::ostream* out) {
  *out << h.name << ':' << h.ranks << (h.counted ? "" : " (not counted)");
}

}  // namespace sojourn

namespace {

using namespace sojourn;
using hosts = std::vector<host_ranks>;

/// What it throws; "" if nothing.
std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const sojourn::error& e) {
    return e.what();
  }
  return "";
}

std::string error_of_list(const std::string& list) {
  return error_of([&] { parse_hosts(list); });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// --- --hosts

TEST(parse_hosts, reads_names_with_and_without_counts) {
  EXPECT_EQ(parse_hosts("a"), (hosts{{"a", 1, false}}));
  EXPECT_EQ(parse_hosts("a,b"), (hosts{{"a", 1, false}, {"b", 1, false}}));
  EXPECT_EQ(parse_hosts("a:2,b:2"), (hosts{{"a", 2, true}, {"b", 2, true}}));
  EXPECT_EQ(parse_hosts("a:1024,b"), (hosts{{"a", 1024, true}, {"b", 1, false}}));
  EXPECT_EQ(parse_hosts(" node-1.site_x.org:3 ,\t10.0.0.7 "),
            (hosts{{"node-1.site_x.org", 3, true}, {"10.0.0.7", 1, false}}));
}

TEST(parse_hosts, takes_a_user_before_the_host) {
  EXPECT_EQ(parse_hosts("me@a:2,you@site.org@b"),
            (hosts{{"me@a", 2, true}, {"you@site.org@b", 1, false}}));
}

TEST(parse_hosts, takes_ipv6_addresses_in_brackets) {
  EXPECT_EQ(parse_hosts("[::1]:2,b"), (hosts{{"::1", 2, true}, {"b", 1, false}}));
  EXPECT_EQ(parse_hosts("[fe80::1%eth0]"), (hosts{{"fe80::1%eth0", 1, false}}));
  EXPECT_EQ(parse_hosts("me@[2001:db8::7]:4"), (hosts{{"me@2001:db8::7", 4, true}}));
}

TEST(parse_hosts, refuses_brackets_without_an_ipv6_address) {
  for (const char* bad :
       {"[::1", "[]", "[a]", "[1-4]", "node[1-4]", "[::1]2", "[::1]x:2", "x[::1]", "[10.0.0.7]",
        "[::1]]", "[::1%]", "[::1%;]", "[me@::1]", "@[::1", "[::1 ]"}) {
    const std::string error = error_of_list(bad);
    EXPECT_TRUE(has(error, "--hosts: ") && has(error, "'" + std::string(bad) + "'")) << error;
    EXPECT_TRUE(has(error, "bracket")) << error;
  }
  EXPECT_TRUE(has(error_of_list("a,::1"), "put an IPv6 address into brackets"));
  EXPECT_TRUE(has(error_of_list("a:2:3"), "'a:2:3' has several colons"));
}

TEST(parse_hosts, refuses_counts_that_are_no_number_from_1_to_1024) {
  for (const char* bad : {"a:", "a:0", "a:-1", "a:1025", "a:x", "a:2x", "a: 2", "a:+2", "a:1.5",
                          "a:99999999999999999999", "[::1]:0", "[::1]:"}) {
    const std::string error = error_of_list("b," + std::string(bad));
    EXPECT_TRUE(has(error, "--hosts: '" + std::string(bad) + "'")) << error;
    EXPECT_TRUE(has(error, "from 1 to 1024")) << error;
  }
}

TEST(parse_hosts, refuses_what_ssh_would_take_for_an_option) {
  for (const char* bad : {"-oProxyCommand=x", "-v", "-", "-l@a", "me@-v", "me@-v:2"}) {
    const std::string error = error_of_list("a," + std::string(bad));
    EXPECT_TRUE(has(error, "--hosts: '" + std::string(bad) + "'")) << error;
    EXPECT_TRUE(has(error, "begins with '-'")) << error;
  }
}

TEST(parse_hosts, refuses_what_is_not_the_name_of_a_host) {
  for (const char* bad : {"a b", "a;b", "a/b", "$(x)", "`x`", "a'b", "a\"b", "a\\b", "a|b", "a&b",
                          "a>b", "h\xc3\xb6st", "a=b", "a*", "a :2", "slots=4"}) {
    const std::string error = error_of_list(bad);
    EXPECT_TRUE(has(error, "is not the name of a host")) << bad << ": " << error;
  }
  EXPECT_TRUE(has(error_of_list("a\x1b[2J"), "\\x1b"));
  EXPECT_FALSE(has(error_of_list("a\x1b[2J"), "\x1b"));
  EXPECT_TRUE(has(error_of_list("a\x1b"), "\\x1b"));
  EXPECT_NE(error_of_list(std::string("a\0b", 3)), "");
  for (const char* bad : {":2", "me@", "me@:2", "@"}) {
    EXPECT_TRUE(has(error_of_list(bad), "lacks the name of a host")) << error_of_list(bad);
  }
  EXPECT_TRUE(has(error_of_list("@a"), "lacks the name of a user"));
}

TEST(parse_hosts, refuses_a_comma_without_a_host) {
  for (const char* bad : {"a,", ",a", "a,,b", ",", "a, ,b"}) {
    EXPECT_TRUE(has(error_of_list(bad), "has a comma with no host")) << bad;
  }
  for (const char* empty : {"", " "}) {
    EXPECT_TRUE(has(error_of_list(empty), "--hosts: no host is named")) << empty;
  }
}

TEST(parse_hosts, refuses_a_host_that_is_named_twice) {
  for (const char* bad : {"a,a", "a:1,b,a:1", "a,me@a", "me@a,you@a", "[::1],me@[::1]", "a,A"}) {
    const std::string error = error_of_list(bad);
    EXPECT_TRUE(has(error, "is named twice")) << bad << ": " << error;
  }
  EXPECT_TRUE(has(error_of_list("b,node7,node7:2"), "'node7'"));
}

// --- A file

struct hostfile : testing::Test {
  std::string path = testing::TempDir() + "hostfile_test_" + std::to_string(getpid());

  ~hostfile() override { unlink(path.c_str()); }
  void write(const std::string& text) const {
    std::FILE* file = std::fopen(path.c_str(), "we");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
  }
  hosts read(const std::string& text) const {
    write(text);
    return read_hostfile(path);
  }
  std::string error_of_text(const std::string& text) const {
    return error_of([&] { read(text); });
  }
};

TEST_F(hostfile, has_a_host_in_each_line) {
  EXPECT_EQ(read("a\nb:4\nc slots=2\n"), (hosts{{"a", 1, false}, {"b", 4, true}, {"c", 2, true}}));
  EXPECT_EQ(read("me@[::1]:3\nc\tslots=1024"), (hosts{{"me@::1", 3, true}, {"c", 1024, true}}));
}

TEST_F(hostfile, may_have_comments_and_blank_lines) {
  EXPECT_EQ(read("# all of them\n\n  a  # the first\n \t\nb:4#four\r\n\r\n  c   slots=2  \n#end"),
            (hosts{{"a", 1, false}, {"b", 4, true}, {"c", 2, true}}));
}

TEST_F(hostfile, is_refused_with_the_line_that_is_wrong) {
  for (const char* bad : {"a b", "a max_slots=4", "a slots=4 max_slots=8", "a slots = 4", "a, b",
                          "a slots=0", "a slots=", "a slots=x", "a slots=1025", "a:2 slots=2", "-v",
                          "a:0", "[a]", "a;b", "::1", "slots=4", "a,b"}) {
    const std::string error = error_of_text("# hosts\nfirst\n\n" + std::string(bad) + "\nlast\n");
    EXPECT_EQ(error.find(path + ":4: "), 0U) << bad << ": " << error;
  }
  EXPECT_TRUE(has(error_of_text("a max_slots=4"), "'max_slots=4' is not understood"));
  EXPECT_TRUE(has(error_of_text("a:2 slots=2"), "says twice"));
}

TEST_F(hostfile, names_each_host_once) {
  const std::string error = error_of_text("a\nb\n\na:2\n");
  EXPECT_EQ(error.find(path + ":4: the host 'a' is named twice, first in line 1"), 0U) << error;
}

TEST_F(hostfile, names_a_host) {
  for (const char* empty : {"", "\n", "# nobody\n"}) {
    EXPECT_TRUE(has(error_of_text(empty), path + ": no host is named")) << empty;
  }
}

TEST_F(hostfile, can_be_read) {
  const std::string missing = error_of([&] { read_hostfile(path); });
  EXPECT_TRUE(has(missing, "'" + path + "' cannot be read: No such file or directory")) << missing;
  const std::string folder = error_of([] { read_hostfile("/"); });
  EXPECT_TRUE(has(folder, "'/' cannot be read: Is a directory")) << folder;
}

// --- Sharing

/// The ranks of each host, after sharing.
std::vector<int> shared(const std::string& list, int ranks) {
  hosts all = parse_hosts(list);
  share_ranks(all, ranks, true);
  std::vector<int> counts;
  for (const host_ranks& host : all) counts.push_back(host.ranks);
  return counts;
}

std::string error_of_sharing(const std::string& list, int ranks, const std::string& given_as = "") {
  return error_of([&] {
    hosts all = parse_hosts(list);
    share_ranks(all, ranks, true, given_as);
  });
}

TEST(share_ranks, gives_one_rank_to_each_host_that_has_no_count) {
  hosts all = parse_hosts("a,b:3,c");
  share_ranks(all, 0, false);
  EXPECT_EQ(all, (hosts{{"a", 1, false}, {"b", 3, true}, {"c", 1, false}}));
}

TEST(share_ranks, divides_ranks_as_evenly_as_possible_among_hosts_without_counts) {
  EXPECT_EQ(shared("a,b", 4), (std::vector{2, 2}));
  EXPECT_EQ(shared("a,b,c", 8), (std::vector{3, 3, 2}));
  EXPECT_EQ(shared("a,b,c", 7), (std::vector{3, 2, 2}));
  EXPECT_EQ(shared("a", 1024), (std::vector{1024}));
}

TEST(share_ranks, leaves_out_hosts_that_would_have_no_rank) {
  hosts all = parse_hosts("a,b,c,d");
  share_ranks(all, 2, true);
  EXPECT_EQ(all, (hosts{{"a", 1, false}, {"b", 1, false}}));
  EXPECT_EQ(shared("a,b,c", 1), (std::vector{1}));
  EXPECT_EQ(shared("a,b,c", 3), (std::vector{1, 1, 1}));
}

TEST(share_ranks, keeps_counts_whose_sum_is_right) {
  EXPECT_EQ(shared("a:4,b:2", 6), (std::vector{4, 2}));
  EXPECT_EQ(shared("a:4,b", 5), (std::vector{4, 1}));
}

TEST(share_ranks, refuses_counts_with_another_sum) {
  EXPECT_EQ(error_of_sharing("a:2,b:2", 6),
            "-n 6 asks for 6 ranks, and --hosts a:2,b:2 names 4: leave one of the two out");
  EXPECT_EQ(error_of_sharing("a:2,me@[::1]:2", 1),
            "-n 1 asks for 1 rank, and --hosts a:2,me@[::1]:2 names 4: leave one of the two out");
  EXPECT_EQ(error_of_sharing("a:2,b", 4),
            "-n 4 asks for 4 ranks, and --hosts a:2,b names 3, one for each host without a number: "
            "leave one of the two out");
  EXPECT_EQ(error_of_sharing("a:2,b:2", 3, "--hostfile f"),
            "-n 3 asks for 3 ranks, and --hostfile f names 4: leave one of the two out");
}

}  // namespace
