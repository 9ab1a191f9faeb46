// SPDX-License-Identifier: Apache-2.0
//
// How fast diffs of pages are made, beside memcmp of as many bytes, for `sojourn bench shared`. It
// stands among the tests because it calls what the public headers do not have.
//
//   memcmp    of two pages that are equal
//   clean     a diff of such pages
//   eighth    a diff where 64 doubles in a row have changed
//   dense     a diff where a double has changed in each line
//
// `bytes` is how much memory the pages take in all: what fits in a cache, or does not.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/command_channel.hpp"
#include "shared/pages/diff.hpp"

namespace {

using sojourn::detail::pages::diff_bytes_max;
using sojourn::detail::pages::make_diff;
using sojourn::detail::pages::page_bytes;

constexpr std::size_t doubles_of_page = page_bytes / sizeof(double);

struct page_pairs {
  std::vector<std::byte> now;
  std::vector<std::byte> twins;
};

void change(std::byte* page, std::size_t at_double) {
  const std::array<unsigned char, sizeof(double)> all{0x55, 0x55, 0x55, 0x55,
                                                      0x55, 0x55, 0x55, 0x55};
  std::memcpy(page + at_double * sizeof(double), all.data(), sizeof(double));
}

/// Nothing where the operation is unknown.
bool make_pages(std::string_view operation, std::size_t count, page_pairs& to) {
  to.now.assign(count * page_bytes, std::byte{3});
  to.twins = to.now;
  if (operation == "memcmp" || operation == "clean") return true;
  for (std::size_t p = 0; p < count; ++p) {
    std::byte* page = to.now.data() + p * page_bytes;
    if (operation == "eighth") {
      for (std::size_t d = 0; d < doubles_of_page / 8; ++d) change(page, 128 + d);
    } else if (operation == "dense") {
      for (std::size_t d = 0; d < doubles_of_page; d += 8) change(page, d);
    } else {
      return false;
    }
  }
  return true;
}

std::vector<double> measure(const bench::command& next) {
  const std::size_t count = std::max<std::size_t>(next.plan.bytes / page_bytes, 1);
  page_pairs all;
  if (!make_pages(next.operation, count, all)) return {};
  const bool compares = next.operation == "memcmp";
  alignas(64) static std::array<std::byte, diff_bytes_max> diff;
  std::size_t at = 0;
  return bench::time_batches(next.plan, [&](std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i, at = (at + 1) % count) {
      const std::byte* now = all.now.data() + at * page_bytes;
      const std::byte* twin = all.twins.data() + at * page_bytes;
      const std::size_t found = compares
                                    ? static_cast<std::size_t>(std::memcmp(now, twin, page_bytes))
                                    : make_diff(diff.data(), now, twin);
      bench::touch(&found);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "clean");
  if (options.cpus_given && !bench::pin_to_cpu(options.cpus.front())) {
    std::perror("bench_diff: cannot pin to the core given with --cpus");
    return 2;
  }
  if (options.commands.empty()) {
    const auto found = measure({options.operation, options.plan});
    if (found.empty()) {
      std::fprintf(stderr, "bench_diff: no operation %s\n", options.operation.c_str());
      return 2;
    }
    bench::print_samples("sojourn", options, found);
    return 0;
  }
  bench::command_channel channel(options, 0);
  while (const auto next = channel.next()) {
    const auto found = measure(*next);
    if (found.empty())
      channel.refuse("bench_diff does not know this operation");
    else
      channel.answer(found);
  }
  return 0;
}
