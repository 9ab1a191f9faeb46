// SPDX-License-Identifier: Apache-2.0
// What the three programs of these jobs know of each other: names and signatures, no
// implementation.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "jobs/check.hpp"

namespace mpmd {

using namespace sojourn;

/// Exported by all three, each with its own.
using who = method<"common.who", char()>;

// --- the farm ------------------------------------------------------------------------------------

struct counter;
struct counter_interface : remote_class<counter, "counter"> {
  using create = constructor<long>;
  using add = method<"add", long(long)>;
  using value = method<"value", long() const>;
  using where = method<"where", rank_t() const>;
  /// Adds all, and says what it added, by name.
  using add_all =
      method<"add_all",
             std::map<std::string, long>(const std::vector<std::pair<std::string, long>>&)>;
};
using square = method<"farm.square", long(int)>;
using sum = method<"farm.sum", double(std::array<double, 40>, const std::array<int, 3>&)>;
/// Asks the shop on another rank, while it blocks.
using squared_price = method<"farm.squared_price", long(rank_t shop, int item)>;
/// Runs an activation that goes to another rank of the farm.
using walk = method<"farm.walk", rank_t(global_ptr<counter> to)>;
using number_of_notes = method<"farm.number_of_notes", long()>;
using note = method<"farm.note", void(int)>;
using throws = method<"farm.throws", void(int kind)>;
using spawns = method<"farm.spawns", thread(int milliseconds)>;
using repeat = method<"farm.repeat", std::vector<std::string>(const std::string&, int)>;
using total = method<"farm.total", long(std::span<const long>)>;
/// Waits in the shop, with what it was given.
using priced = method<"farm.priced", std::vector<int>(rank_t shop, std::vector<int> items)>;
using reversed = method<"farm.reversed", std::string(std::string)>;
using keep = method<"farm.keep", void(std::unique_ptr<std::string>)>;
using kept = method<"farm.kept", std::optional<std::string>()>;
/// Called by one claim only.
using seen_once = method<"farm.seen_once", void(int)>;

// --- the shop ------------------------------------------------------------------------------------

using price = method<"shop.price", int(int item)>;
/// Adds to a counter, wherever that is.
using bump = method<"shop.bump", long(global_ptr<counter>, long)>;
using recurse = method<"shop.recurse", int(rank_t other, int depth)>;
using stops = method<"shop.stops", bool(stop_token)>;

// --- names that are wrong ------------------------------------------------------------------------

using misspelt = method<"farm.sqaure", long(int)>;
using misspelt_length = method<"farm.lenght", long(const std::vector<char>&)>;
using square_of_long = method<"farm.square", long(long)>;
using square_to_int = method<"farm.square", int(int)>;
using wrong_add_text = method<"counter.add", long (counter::*)(const std::string&)>;
using wrong_add = method<"counter.add", long (counter::*)(int)>;

/// Of the same name in both programs, and of other sizes.
#ifdef FARM
struct growing {
  int a, b;
};
#else
struct growing {
  int a;
};
#endif
using of_other_size = method<"farm.of_other_size", int(growing)>;

// --- exceptions ----------------------------------------------------------------------------------

/// Registered in all programs.
struct out_of_stock : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Registered in all programs, trivially copyable; registered behind others in one of them.
struct shortage {
  int item;
  int missing;
};
/// Registered in the farm alone.
struct blight : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct frost {
  int degrees;
};
/// Registered nowhere.
struct hail : std::runtime_error {
  using std::runtime_error::runtime_error;
};
enum { standard, registered, registered_bytes, unknown, unknown_bytes, nowhere, of_thread };

/// What every program does, between barriers.
int run_claims();

}  // namespace mpmd
