// SPDX-License-Identifier: Apache-2.0
// What the programs that try the words on small examples share: how many requests are made, by how
// many requesters, and with which word; and their report.
#pragma once

#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/application.hpp"
#include "common/fault.hpp"
#include "common/measure.hpp"
#include "common/random.hpp"

namespace apps {

class requests {
 public:
  explicit requests(std::uint64_t operations) : operations_(operations) {}

  void add_to(command_line& options) {
    options.add("--ops", operations_, "Operations of all requesters together")
        .between(std::uint64_t{1}, std::uint64_t{1} << 28);
    options.add("--requesters", requesters_, "Requesters in the whole job, spread over the ranks")
        .between(1, 4096);
    add_via(options, how_);
    json_.add_to(options);
  }

  sojourn::via how() const { return how_; }
  std::uint64_t operations() const { return operations_; }
  void open_json() { json_.open(); }

  /// Calls body(i, random) for i = 0 … operations() - 1, dealt out to the requesters; the random
  /// numbers follow from `seed` and i alone. Collective. Suspends.
  figures make(std::uint64_t seed,
               const std::function<void(std::uint64_t, random_source&)>& body) const {
    return make_some(0, operations_, seed, body);
  }
  /// The same for i = first … end - 1.
  figures make_some(std::uint64_t first, std::uint64_t end, std::uint64_t seed,
                    const std::function<void(std::uint64_t, random_source&)>& body) const {
    const auto step = static_cast<std::uint64_t>(requesters_);
    return measure(requesters_, [&](int requester, histogram& latencies) {
      for (auto i = first + static_cast<std::uint64_t>(requester); i < end; i += step) {
        random_source random(mix64(seed) ^ i);
        timed(latencies, [&] {
          body(i, random);
          return 0;
        });
      }
    });
  }

  /// Ends the program when a rank has found something wrong; else says what was measured. `more`:
  /// what the JSON has besides. Collective. Returns the status.
  int report(const std::string& what, const figures& measured, const std::string& wrong_here,
             const nlohmann::ordered_json& more = nlohmann::ordered_json::object()) {
    if (const std::string wrong = first_fault(wrong_here); !wrong.empty()) throw refusal(1, wrong);
    say(json_.readable(),
        fmt::format("{}, {} ranks, {} requesters, via {}\n{}all results are right\n", what,
                    sojourn::rank_count(), requesters_, name_of(how_), to_text(measured)));
    nlohmann::ordered_json all = {{"ranks", sojourn::rank_count()},
                                  {"requesters", requesters_},
                                  {"via", name_of(how_)},
                                  {"figures", to_json(measured)}};
    all.update(more);
    json_.write(all);
    return 0;
  }

 private:
  std::uint64_t operations_;
  int requesters_ = 16;
  sojourn::via how_ = sojourn::via::rpc;
  json_report json_;
};

/// Objects that are dealt out to the ranks as cards are: object i lies on rank i mod rank_count().
/// Each rank has the addresses of all.
template <class T>
class dealt_out {
 public:
  /// Value-initialises `count` objects. Collective. Suspends.
  explicit dealt_out(std::uint64_t count)
      : count_(count),
        parts_(sojourn::all_gather(sojourn::make_array<T>(sojourn::rank_me(), each()))) {}
  dealt_out(const dealt_out&) = delete;
  dealt_out& operator=(const dealt_out&) = delete;
  /// Collective, unless an exception ends the program. Suspends.
  ~dealt_out() {
    if (std::uncaught_exceptions() > 0) return;
    sojourn::barrier();
    sojourn::destroy_array(parts_[static_cast<std::size_t>(sojourn::rank_me())], each());
  }

  sojourn::global_ptr<T> operator[](std::uint64_t i) const {
    const auto ranks = static_cast<std::uint64_t>(sojourn::rank_count());
    return parts_[i % ranks] + static_cast<std::ptrdiff_t>(i / ranks);
  }
  std::uint64_t size() const { return count_; }

  /// Calls body(i, pointer to object) for those of this rank. No references to the objects: a
  /// program that uses them so keeps them from moving (via::fetch).
  template <class Body>
  void for_mine(Body body) const {
    const auto ranks = static_cast<std::uint64_t>(sojourn::rank_count());
    for (auto i = static_cast<std::uint64_t>(sojourn::rank_me()); i < count_; i += ranks) {
      body(i, (*this)[i]);
    }
  }

 private:
  std::size_t each() const {
    const auto ranks = static_cast<std::uint64_t>(sojourn::rank_count());
    return (count_ + ranks - 1) / ranks;
  }

  std::uint64_t count_;
  std::vector<sojourn::global_ptr<T>> parts_;
};

}  // namespace apps
