// SPDX-License-Identifier: Apache-2.0
// A rank uses shared memory for the first time while it writes a message: the page that it asks for
// then must not disturb the message. One way for each run, because a rank has one first time.
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t count = 1500;
constexpr long right = static_cast<long>(count * (count - 1) / 2);

std::span<const int> values_at(std::uintptr_t at) {
  return {reinterpret_cast<const int*>(at), count};
}
long sum_of(std::span<const int> values) {
  return std::accumulate(values.begin(), values.end(), 0L);
}

/// An argument whose bytes come from a page that is not here. (By its vector it does not travel as
/// the bytes that it has.)
struct lazily_read {
  std::uintptr_t at = 0;
  long sum = 0;
  std::vector<int> none = {};
  template <class Archive>
  void save(Archive& archive) const {
    archive(sum_of(values_at(at)));
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(sum);
  }
};

/// Runs on a rank that has used no shared memory yet; two fibers of it do so at once.
long first_use(const std::string& how, std::uintptr_t at) {
  const rank_t to = how == "to_itself" ? rank_me() : rank_count() - 1;
  const auto call = [&] {
    if (how == "serializer")
      return rpc(to, [](const lazily_read& read) { return read.sum; }, lazily_read{.at = at}).get();
    return rpc(to, [](std::span<const int> values) { return sum_of(values); }, values_at(at)).get();
  };
  std::unique_ptr<aggregated> bundles;
  if (how == "bundled") bundles = std::make_unique<aggregated>();
  if (how == "bundled") rpc_ff(to, [] {});
  auto other = fork([] { return rpc(rank_me(), [] { return 1L; }).get(); });
  const long sum = call();
  return sum + other.get() - 1;
}

void the_message_arrives_whole(const std::string& how) {
  if (rank_me() == 0) {
    int* values = shared::alloc<int>(count);
    std::iota(values, values + count, 0);
    const auto at = reinterpret_cast<std::uintptr_t>(values);
    CHECK_EQUAL(rpc(1 % rank_count(), first_use, how, at).get(), right);
  }
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "call";
  return run(argc, argv, [&] {
    check::claim(("the message arrives whole: " + how).c_str(),
                 [&] { the_message_arrives_whole(how); });
    return check::verdict();
  });
}
