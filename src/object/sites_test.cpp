// SPDX-License-Identifier: Apache-2.0
#include "object/sites.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "sojourn/detail/method.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/via.hpp"

namespace app {
struct node {
  int child(int x) const { return x; }
  int overloaded(int x) { return x; }
  int overloaded(long) { return 0; }
  int operator()(int x) { return x; }
};
template <class K>
struct list {
  int find(K) noexcept { return 0; }
};
}  // namespace app

namespace {

struct hidden {
  int get() const { return 1; }
};

using sojourn::via;
using sojourn::detail::access;
using sojourn::detail::method_name;
using sojourn::detail::method_name_in;

TEST(sites, a_method_is_named_as_gcc_writes_it) {
  EXPECT_EQ(method_name_in("const char* sojourn::detail::method_name() "
                           "[with auto Method = &app::node::child]"),
            "app::node::child");
  EXPECT_EQ(method_name_in("const char* f() [with auto Method = &{anonymous}::hidden::get]"),
            "{anonymous}::hidden::get");
  EXPECT_EQ(method_name_in("const char* f() [with auto Method = &app::node::operator()]"),
            "app::node::operator()");
  // Older compilers write the type of an overloaded method first.
  EXPECT_EQ(method_name_in("const char* f() [with auto Method = (int (app::node::*)(long int))"
                           "(& app::node::overloaded)]"),
            "app::node::overloaded");
}

TEST(sites, a_method_is_named_as_clang_writes_it) {
  EXPECT_EQ(method_name_in("const char *sojourn::detail::method_name() "
                           "[Method = &app::node::child]"),
            "app::node::child");
  EXPECT_EQ(method_name_in("const char *f() [Method = &(anonymous namespace)::hidden::get]"),
            "(anonymous namespace)::hidden::get");
}

TEST(sites, template_arguments_belong_to_the_name) {
  EXPECT_EQ(method_name_in("const char* f() [with auto Method = &app::list<int>::find]"),
            "app::list<int>::find");
  EXPECT_EQ(method_name_in("const char* f() [with auto Method = &app::list<const key&>::find]"),
            "app::list<const key&>::find");
  EXPECT_EQ(method_name_in("const char *f() [Method = &app::list<const key &>::find]"),
            "app::list<const key &>::find");
}

TEST(sites, what_is_not_a_method_has_no_name) {
  EXPECT_EQ(method_name_in(""), "");
  EXPECT_EQ(method_name_in("int main()"), "");
  EXPECT_EQ(method_name_in("]"), "");
}

TEST(sites, this_compiler_is_understood) {
  EXPECT_EQ(method_name_in(method_name<&app::node::child>()), "app::node::child");
  EXPECT_EQ(
      method_name_in(method_name<static_cast<int (app::node::*)(long)>(&app::node::overloaded)>()),
      "app::node::overloaded");
  EXPECT_EQ(method_name_in(method_name<&app::node::operator()>()), "app::node::operator()");
  EXPECT_TRUE(method_name_in(method_name<&app::list<const int&>::find>()).ends_with(">::find"));
  EXPECT_TRUE(method_name_in(method_name<&app::list<const int&>::find>())
                  .starts_with("app::list<const int"));
  EXPECT_TRUE(method_name_in(method_name<&hidden::get>()).ends_with("::hidden::get"));
}

via::mechanism mechanism(via how, const char* method) {
  return sojourn::detail::override_access(access(how), method, method, true).how();
}

TEST(sites, a_rule_fits_a_method_by_the_end_of_its_name) {
  setenv("SOJOURN_VIA", "node::child=migrate,find=rpc,hidden::get=migrate", 1);
  sojourn::detail::attach_sites();
  unsetenv("SOJOURN_VIA");
  EXPECT_NE(sojourn::detail::job.overrides, 0);
  EXPECT_EQ(mechanism(via::rpc, method_name<&app::node::child>()), via::mechanism::migrate);
  EXPECT_EQ(mechanism(via::rpc, method_name<&hidden::get>()), via::mechanism::migrate);
  EXPECT_EQ(mechanism(via::migrate, method_name<&app::list<int>::find>()), via::mechanism::rpc);
  EXPECT_EQ(mechanism(via::migrate, method_name<&app::list<const int&>::find>()),
            via::mechanism::rpc);
  // Names match by whole words only.
  EXPECT_EQ(mechanism(via::rpc, "[with auto Method = &app::grandnode::child]"),
            via::mechanism::rpc);
  EXPECT_EQ(mechanism(via::rpc, "[with auto Method = &app::node::child_of]"), via::mechanism::rpc);
  // An access that asks for this mechanism already keeps its other settings.
  EXPECT_EQ(sojourn::detail::override_access(access(via::migrate.activations(3)),
                                             method_name<&app::node::child>(),
                                             &sojourn::detail::job, true),
            via::migrate.activations(3));
}

TEST(sites, a_bad_setting_is_one_sentence_that_names_the_part) {
  for (const char* bad : {"nonsense", "node::child=", "=rpc", "node::child=fork", "a=rpc,b",
                          "a=rpc,,b=rpc", "a=RPC"}) {
    setenv("SOJOURN_VIA", bad, 1);
    EXPECT_THROW(sojourn::detail::attach_sites(), sojourn::error) << bad;
  }
  setenv("SOJOURN_VIA", "a=rpc,node::child=fork,c=rpc", 1);
  try {
    sojourn::detail::attach_sites();
    ADD_FAILURE() << "it is accepted";
  } catch (const sojourn::error& e) {
    EXPECT_EQ(
        std::string(e.what()),
        "SOJOURN_VIA: `node::child=fork` is neither name=WORD, where name is a method such "
        "as node::child or a line such as tree.cpp:120, nor WORD alone, for every access; the "
        "words are rpc, migrate, cache, fetch and automatic");
  }
  unsetenv("SOJOURN_VIA");
}

}  // namespace
