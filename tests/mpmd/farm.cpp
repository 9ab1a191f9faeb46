// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "interface.hpp"

namespace mpmd {

struct counter {
  long n;
  explicit counter(long start) : n(start) {
    if (start < 0) throw std::invalid_argument("counters begin at 0 or more");
  }
  long add(long more) { return n += more; }
  long value() const { return n; }
  rank_t where() const { return rank_me(); }
  std::map<std::string, long> add_all(const std::vector<std::pair<std::string, long>>& all) {
    std::map<std::string, long> added;
    for (const auto& [name, more] : all) {
      n += more;
      added[name] += more;
    }
    return added;
  }
};

namespace {

long notes = 0;

std::optional<std::string> last_kept;

long squared(int x) { return static_cast<long>(x) * x; }

rank_t follow(global_ptr<counter> to) {
  (void)to.call<&counter::value>(via::migrate);
  return rank_me();
}

void throw_one(int kind) {
  switch (kind) {
    case standard:
      throw std::out_of_range("too far out");
    case registered:
      throw out_of_stock("no apples");
    case registered_bytes:
      throw shortage{7, 3};
    case unknown:
      throw blight("potatoes");
    case unknown_bytes:
      throw frost{-5};
    case nowhere:
      throw hail("stones");
    case of_thread:
      throw thread_error(thread_refusal::pinned, "pinned for a test");
  }
}

}  // namespace
}  // namespace mpmd

// In another order than elsewhere, behind types that others do not have.
SOJOURN_EXCEPTION(mpmd::blight);
SOJOURN_EXCEPTION(mpmd::frost);
SOJOURN_EXCEPTION(mpmd::shortage);
SOJOURN_EXCEPTION(mpmd::out_of_stock);

using namespace mpmd;

int main(int argc, char** argv) {
  exports<who>([] { return 'f'; });
  exports<square>(&squared);
  exports<repeat>([](const std::string& word, int times) {
    return std::vector<std::string>(static_cast<std::size_t>(times), word);
  });
  exports<total>([](std::span<const long> values) {
    return std::accumulate(values.begin(), values.end(), 0L);
  });
  exports<priced>([](rank_t shop, std::vector<int> items) {
    for (int& item : items) item = rpc(shop, price(), item).get();
    return items;
  });
  exports<reversed>([](std::string text) { return std::string(text.rbegin(), text.rend()); });
  exports<keep>([](std::unique_ptr<std::string> text) { last_kept = *text; });
  exports<kept>([] { return std::exchange(last_kept, std::nullopt); });
  exports<counter_interface::add_all>(&counter::add_all);
  exports<sum>([](std::array<double, 40> values, const std::array<int, 3>& more) {
    double all = more[0] + more[1] + more[2];
    for (double v : values) all += v;
    return all;
  });
  exports<squared_price>([](rank_t shop, int item) {
    long p = rpc(shop, price(), item).get();
    return p * p;
  });
  exports<walk>([](global_ptr<counter> to) { return activate(follow, to); });
  exports<note>([](int n) { notes += n; });
  exports<number_of_notes>([] { return notes; });
  exports<throws>(throw_one);
  exports<spawns>([](int milliseconds) {
    return spawn([](int ms) { sleep_for(std::chrono::milliseconds(ms)); }, milliseconds);
  });
  exports<seen_once>([](int) {});
  exports<of_other_size>([](growing g) { return g.a; });
  exports<counter_interface::create>();
  exports<counter_interface::add>(&counter::add);
  exports<counter_interface::value>(&counter::value);
  exports<counter_interface::where>(&counter::where);
  return run(argc, argv, run_claims);
}
