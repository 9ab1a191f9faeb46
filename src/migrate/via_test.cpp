// SPDX-License-Identifier: Apache-2.0
#include "sojourn/via.hpp"

#include <gtest/gtest.h>

#include "sojourn/activate.hpp"

namespace {

using sojourn::activation;
using sojourn::via;

static_assert(sizeof(via) == 8, "one word, in a register");
static_assert(via::rpc.how() == via::mechanism::rpc);
static_assert(via::migrate.how() == via::mechanism::migrate);
static_assert(via::migrate.count() == 1 && via::migrate.through_address() == 0);
static_assert(via::rpc != via::migrate);

TEST(via, counts_are_kept_beside_the_mechanism) {
  for (unsigned n : {1u, 2u, 100u, via::all_of_them - 1, via::all_of_them}) {
    via v = via::migrate.activations(n);
    EXPECT_EQ(v.how(), via::mechanism::migrate);
    EXPECT_EQ(v.count(), n);
    EXPECT_EQ(v.through_address(), 0u);
  }
  EXPECT_EQ(via::migrate.activations(1), via::migrate);
  EXPECT_EQ(via::migrate.activations(2).activations(1), via::migrate) << "the last one counts";
  EXPECT_EQ(via::rpc.activations(7).how(), via::mechanism::rpc);
}

TEST(via, more_than_there_can_be_are_all) {
  EXPECT_EQ(via::migrate.all().count(), via::all_of_them);
  for (unsigned n : {via::all_of_them + 1, 1u << 16, ~0u}) {
    EXPECT_EQ(via::migrate.activations(n), via::migrate.all());
  }
}

TEST(via, through_keeps_the_address_of_the_activation) {
  activation none;
  EXPECT_EQ(via::migrate.through(none), via::migrate.all());
  const activation first = sojourn::activate([] { return sojourn::this_activation(); });
  EXPECT_NE(via::migrate.through(first), via::migrate.all());
  EXPECT_EQ(via::migrate.through(first).through(none), via::migrate.all()) << "the last one counts";
  bool kept = sojourn::activate([] {
    activation outer = sojourn::this_activation();
    via v = via::migrate.through(outer);
    bool same = sojourn::activate(
        [](activation o) {
          return o != sojourn::this_activation() &&
                 via::migrate.through(o) != via::migrate.through(sojourn::this_activation());
        },
        outer);
    return same && v.count() == via::all_of_them && v.how() == via::mechanism::migrate &&
           v.through_address() != 0 && sojourn::this_activation() == outer;
  });
  EXPECT_TRUE(kept);
}

}  // namespace
