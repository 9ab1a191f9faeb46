// SPDX-License-Identifier: Apache-2.0
// SOJOURN_VIA tries another mechanism at an access without a rebuild: the same program sends other
// messages and finds the same. Its argument says what is expected:
//   as_written | by_method | by_line | by_line_of_two | all_rpc
#include <functional>
#include <string_view>

#include "check.hpp"

using namespace sojourn;

namespace shop {

struct counter {
  long value = 0;
  long step = 1;
  long advance(long by) { return value += by * step; }
  long peek() const { return value; }
};

}  // namespace shop

namespace {

using shop::counter;

struct cost {
  long sum;
  counters used;
};

/// Two accesses to each of four counters on the next rank. The lines are numbered for the settings.
long visits(global_ptr<counter> first) {
  long sum = 0;
  for (int i = 0; i < 4; ++i) {
    global_ptr<counter> c = first + i;
#line 1001 "tests/jobs/overrides.cpp"
    sum += c.call<&counter::advance>(via::rpc, 10L + i);
    sum += c.call<&counter::peek>(via::rpc);
  }
  return sum;
}

long visits_migrating(global_ptr<counter> first) {
  long sum = 0;
#line 2001 "tests/jobs/overrides.cpp"
  for (int i = 0; i < 4; ++i) sum += (first + i).call<&counter::peek>(via::migrate);
  return sum;
}

template <class Visits>
cost measured(Visits v) {
  auto first = make_array<counter>(rank_count() - 1, 4);
  auto before = counters_now();
  long sum = activate(v, first);
  cost c{sum, counters_now() - before};
  destroy_array(first, 4);
  return c;
}

/// Of rank 0 alone; replies and results come from the other rank.
void expect(const counters& used, int requests, int migrations) {
  CHECK_EQUAL(used.requests_sent, requests);
  CHECK_EQUAL(used.migrations, migrations);
  CHECK_EQUAL(used.migrations_refused, 0);
}

void one_program(std::string_view expected) {
  if (rank_me() != 0) return;
  cost plain = measured(visits);
  cost migrating = measured(visits_migrating);
  CHECK_EQUAL(plain.sum, 2 * (10 + 11 + 12 + 13));
  CHECK_EQUAL(migrating.sum, 0);
  if (rank_count() == 1) {
    expect(plain.used, 0, 0);
    expect(migrating.used, 0, 0);
  } else if (expected == "as_written") {
    expect(plain.used, 8, 0);
    expect(migrating.used, 0, 1);
  } else if (expected == "by_method" || expected == "by_line") {
    // It has gone there at the first of them, and the rest is local.
    expect(plain.used, 0, 1);
    expect(migrating.used, 0, 1);
  } else if (expected == "by_line_of_two") {
    // The first access of the loop stays an rpc; the second moves, and the rest is local.
    expect(plain.used, 1, 1);
    expect(migrating.used, 0, 1);
  } else if (expected == "all_rpc") {
    expect(plain.used, 8, 0);
    expect(migrating.used, 4, 0);
  } else {
    CHECK(!"an argument that this program knows");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view expected = argc > 1 ? argv[1] : "as_written";
  return run(argc, argv, [expected] {
    check::claim("SOJOURN_VIA changes messages, not results", [=] { one_program(expected); });
    return check::verdict();
  });
}
