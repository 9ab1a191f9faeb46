// SPDX-License-Identifier: Apache-2.0
// Streams of requests to a dictionary: the YCSB core workloads and the paper's.
//
// Every stream is determined by its seed, so whoever wants to know what a tree should hold after a
// run replays the streams into a std::map. Requests of different requesters may come in any order:
// that the outcome is known all the same, each changes only records of its own share. Reads and
// scans go anywhere.
// Source: Cooper et al., "Benchmarking cloud serving systems with YCSB" (SoCC 2010).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btree/btree.hpp"
#include "common/random.hpp"
#include "common/zipf.hpp"

namespace apps {

/// What requesters ask for; percentages that add up to 100.
struct workload {
  const char* name;
  const char* description;
  int read, update, insert, scan;
  /// Which records are asked for.
  enum class choice : std::uint8_t { zipfian, latest, uniform } records;
};

/// A, B, C, D, E and paper.
std::span<const workload> workloads();
/// Requires: one of the names.
const workload& workload_named(std::string_view name);

/// The records that the tree holds when a run begins; each rank has the same.
template <class Key>
class dataset {
 public:
  /// Shuffles the keys: neighbours in the order of keys are not equally popular. Requires: distinct
  /// keys, at least one.
  explicit dataset(std::vector<Key> keys);

  const Key& key(std::uint64_t record) const { return keys_[record]; }
  const std::vector<Key>& sorted() const { return sorted_; }
  std::uint64_t size() const { return keys_.size(); }
  const zipf& popularity() const { return popularity_; }
  /// Where the parts of a tree on `ranks` ranks begin, for layout::subtree.
  std::vector<Key> boundaries(int ranks) const;

 private:
  std::vector<Key> keys_;
  std::vector<Key> sorted_;
  zipf popularity_;
};

/// The value that a record gets by a certain write. It tells the key it belongs to.
template <class Key, class Value>
Value make_value(const Key& key, std::uint64_t write);
template <class Key, class Value>
bool belongs_to(const Value& value, const Key& key);

/// The value every record has when it is loaded.
inline constexpr std::uint64_t loaded = 0;

enum class request_kind : std::uint8_t { read, update, insert, scan };

template <class Key, class Value>
struct request {
  request_kind kind = request_kind::read;
  Key key{};
  Value value{};            ///< To write; of a read, the value it must find, if that is known.
  bool exact = false;       ///< Of a read: the value is known, for nobody else writes this record.
  std::uint32_t limit = 0;  ///< Of a scan.
};

/// The requests of one requester in one run.
template <class Key, class Value>
class request_stream {
 public:
  /// `run` tells one run on a tree from another. Requires: the dataset outlives the stream.
  request_stream(const dataset<Key>& data, const workload& what, int requester, int requesters,
                 std::uint64_t run);

  request<Key, Value> next();

 private:
  request<Key, Value> read();
  request<Key, Value> update();
  request<Key, Value> insert();
  std::uint64_t any_record();
  /// The number of this requester's write number `count`, in this run.
  std::uint64_t write_number(std::uint64_t count) const;

  const dataset<Key>& data_;
  const workload& what_;
  std::uint64_t requester_;
  std::uint64_t requesters_;
  std::uint64_t run_;
  random_source random_;
  std::uint64_t writes_ = 0;
  std::vector<std::uint64_t> last_write_;  ///< Of each record of our share; 0: not in this run.
  struct inserted {
    Key key;
    std::uint64_t write;
  };
  std::vector<inserted> inserted_;
};

}  // namespace apps
