// SPDX-License-Identifier: Apache-2.0
#include "hosts/checkpoint_parts.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "sojourn/errors.hpp"

using namespace sojourn::detail;
using sojourn::host_ranks;

namespace {

checkpoint_set set_of(std::uint64_t generation) {
  checkpoint_set set;
  set.ranks = 2;
  set.generation = generation;
  return set;
}

/// Two hosts with a rank each; the set is on the first.
std::vector<parts_of_host> two_hosts(std::vector<named_part> on_a, std::vector<named_part> on_b) {
  return {{"a", {0, 1}, {set_of(4), "a:1,b:1", "", std::move(on_a)}},
          {"b", {1, 1}, {std::nullopt, "", "no set", std::move(on_b)}}};
}

template <class Step>
std::string refusal_of(Step step) {
  try {
    step();
  } catch (const sojourn::error& e) {
    return e.what();
  }
  return "";
}

TEST(parts_of_a_checkpoint, may_lie_on_the_host_of_their_rank_or_on_all) {
  check_parts("f", set_of(4), two_hosts({{4, 0}}, {{3, 1}, {4, 1}}));
  check_parts("f", set_of(4), two_hosts({{4, 1}, {4, 0}}, {{4, 0}, {4, 1}}));
}

TEST(parts_of_a_checkpoint, of_an_older_generation_do_not_count) {
  EXPECT_EQ(refusal_of([] { check_parts("f", set_of(4), two_hosts({{4, 0}}, {{3, 1}})); }),
            "cannot restore: f.4.1 is not on host b, where rank 1 is to run, nor on another: the "
            "checkpoint was written with --hosts a:1,b:1");
}

TEST(parts_of_a_checkpoint, are_named_with_the_host_that_has_them) {
  auto hosts = two_hosts({{4, 0}, {4, 1}}, {});
  hosts.front().has.hosts.clear();  // as written on one host
  EXPECT_EQ(refusal_of([&] { check_parts("f", set_of(4), hosts); }),
            "cannot restore: f.4.1 is not on host b, where rank 1 is to run, but on host a: give "
            "each host the ranks whose files it has");
}

TEST(parts_of_a_checkpoint, are_not_looked_at_while_another_job_has_the_path) {
  char folder[] = "/tmp/sojourn_parts_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/state";
  write_set(path, set_of(4), "a:1,b:1");  // without its ranks' files, as while they are replaced
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  char byte = 0;
  const pid_t other = fork();
  if (other == 0) {
    close(ends[0]);
    lock_checkpoint(path, 1, true);
    // Until the test closes its end, or dies.
    (void)!write(ends[1], &byte, 1);
    (void)!read(ends[1], &byte, 1);
    _exit(0);
  }
  close(ends[1]);
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(refusal_of([&] { parts_here(folder, "state"); })
                .find("cannot restore: " + path + " is in use by another running job (pid " +
                      std::to_string(other) + ", "),
            0u);
  close(ends[0]);
  waitpid(other, nullptr, 0);
  EXPECT_EQ(parts_here(folder, "state").set, set_of(4));
  std::filesystem::remove_all(folder);
}

TEST(the_set_of_a_checkpoint, is_that_of_the_host_of_rank_0) {
  auto hosts = two_hosts({}, {});
  hosts.back().has.set = set_of(9);  // left over from another job
  EXPECT_EQ(set_to_restore("f", hosts).set->generation, 4u);
  hosts.front().has.set.reset();
  EXPECT_EQ(set_to_restore("f", hosts).set->generation, 9u);
}

TEST(the_set_of_a_checkpoint, is_missed_with_what_tells_most) {
  auto hosts = two_hosts({}, {});
  hosts.front().has = {std::nullopt, "", "f cannot be opened (No such file or directory)", {}};
  hosts.back().has.refusal = "f is damaged";
  EXPECT_EQ(refusal_of([&] { set_to_restore("f", hosts); }), "host b: f is damaged");
  hosts.back().has.refusal = hosts.front().has.refusal;
  EXPECT_EQ(refusal_of([&] { set_to_restore("f", hosts); }),
            "host a: f cannot be opened (No such file or directory)");
}

TEST(hosts_that_go_on, may_be_others_with_as_many_ranks_each) {
  check_hosts("f", "a:2,b:1", {{"c", 2, true}, {"d", 1, true}});
  check_hosts("f", "", {{"c", 3, true}});
  for (const std::vector<host_ranks>& other :
       {std::vector<host_ranks>{{"a", 1, true}, {"b", 2, true}}, {{"a", 3, true}}}) {
    EXPECT_NE(refusal_of([&] { check_hosts("f", "a:2,b:1", other); })
                  .find("f was written with "
                        "--hosts a:2,b:1"),
              std::string::npos);
  }
  EXPECT_NE(refusal_of([] {
              check_hosts("f", "", {{"a", 2, true}, {"b", 1, true}});
            }).find("all ranks on one host"),
            std::string::npos);
}

TEST(links_of_a_checkpoint, are_those_with_which_it_was_written) {
  checkpoint_set set = set_of(1);
  check_links("f", set, false, false);
  EXPECT_EQ(refusal_of([&] { check_links("f", set, true, false); }),
            "cannot restore: f was written without --net ucx: leave --net ucx out, as then");
  set.encrypted = 1;
  check_links("f", set, false, true);
  EXPECT_EQ(refusal_of([&] { check_links("f", set, false, false); }),
            "cannot restore: f was written with --encrypt: give --encrypt, as then");
}

TEST(what_a_host_has, comes_through_a_record_unchanged) {
  const checkpoint_parts sent{set_of(4), "a:1,b:1", "", {{4, 0}, {3, 1}}};
  record_writer text;
  put(text, sent);
  record_reader from(text.bytes());
  const checkpoint_parts came = read_parts(from);
  EXPECT_TRUE(from.is_sound() && from.at_end());
  EXPECT_EQ(came.set, sent.set);
  EXPECT_EQ(came.hosts, sent.hosts);
  EXPECT_EQ(came.files, sent.files);
}

}  // namespace
