// SPDX-License-Identifier: Apache-2.0
// Many more ranks than cores: barriers and calls between all of them end promptly, for a rank that
// waits gives its core away.
#include <functional>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

// Far above what is needed (some 20 ms on 2 idle cores), far below what spinning ranks take.
constexpr std::uint64_t promptly_ns = 8'000'000'000;

template <class Body>
void ends_promptly(Body body) {
  barrier();
  std::uint64_t began = now_ns();
  body();
  CHECK(now_ns() - began < promptly_ns);
}

void barriers() {
  ends_promptly([] {
    for (int i = 0; i < 200; ++i) barrier();
  });
}

void reductions() {
  ends_promptly([] {
    for (int i = 0; i < 50; ++i) {
      CHECK_EQUAL(reduce(rank_me() + i, std::plus<>{}),
                  rank_count() * (rank_count() - 1) / 2 + i * rank_count());
    }
  });
}

void calls_from_all_to_all() {
  ends_promptly([] {
    std::vector<future<int>> all;
    for (int i = 0; i < 10; ++i) {
      for (rank_t r = 0; r < rank_count(); ++r) {
        all.push_back(rpc(r, [](int x) { return x + rank_me(); }, i));
      }
    }
    for (int i = 0; i < 10; ++i) {
      for (rank_t r = 0; r < rank_count(); ++r) {
        CHECK_EQUAL(all[static_cast<std::size_t>(i * rank_count() + r)].get(), i + r);
      }
    }
    barrier();
  });
}

void a_token_goes_round() {
  // One message at a time: every hop wakes a rank that sleeps.
  ends_promptly([] {
    if (rank_me() == 0) {
      long sum = activate([] {
        long ranks = 0;
        for (int i = 0; i < 10 * rank_count(); ++i) {
          migrate_to((rank_me() + 1) % rank_count());
          ranks += rank_me();
        }
        return ranks;
      });
      CHECK_EQUAL(sum, 10L * rank_count() * (rank_count() - 1) / 2);
    }
    barrier();
  });
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("200 barriers end promptly", barriers);
    check::claim("reductions end promptly", reductions);
    check::claim("calls from all to all end promptly", calls_from_all_to_all);
    check::claim("a token goes round promptly", a_token_goes_round);
    return check::verdict();
  });
}
