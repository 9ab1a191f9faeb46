// SPDX-License-Identifier: Apache-2.0
#include "btree/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace apps {

namespace {

using choice = workload::choice;
constexpr std::array<workload, 6> all_workloads{{
    {"A", "half reads, half updates", 50, 50, 0, 0, choice::zipfian},
    {"B", "95% reads, 5% updates", 95, 5, 0, 0, choice::zipfian},
    {"C", "reads only", 100, 0, 0, 0, choice::zipfian},
    {"D", "95% reads of the latest records, 5% inserts", 95, 0, 5, 0, choice::latest},
    {"E", "95% short scans, 5% inserts", 0, 0, 5, 95, choice::zipfian},
    {"paper", "half lookups, half inserts, in a tree of 10,000 keys", 50, 0, 50, 0,
     choice::uniform},
}};

constexpr std::uint32_t scan_longest = 100;  // As in YCSB.

std::uint64_t hash_of(const text_key& key) { return hash_text(key.view()); }
std::uint64_t hash_of(std::uint64_t key) { return mix64(key); }

/// Sixteen hexadecimal digits.
text_value to_text(std::uint64_t number) {
  std::array<char, 16> digits;
  for (auto d = digits.rbegin(); d != digits.rend(); ++d, number >>= 4) {
    *d = "0123456789abcdef"[number & 15];
  }
  return std::string_view(digits.data(), digits.size());
}

/// A key that no record has: the text of one, marked with who made it when.
text_key fresh_key(const text_key& like, std::uint64_t run, std::uint64_t requester,
                   std::uint64_t count) {
  const std::string mark = fmt::format("~{:x}.{:x}.{:x}", run, requester, count);
  return fmt::format("{}{}", like.view().substr(0, text_key::capacity() - mark.size()), mark);
}
/// Among 2^64 numbers a random one is free.
std::uint64_t fresh_key(std::uint64_t, std::uint64_t run, std::uint64_t requester,
                        std::uint64_t count) {
  return mix64(mix64(mix64(run) ^ requester) ^ count);
}

}  // namespace

std::span<const workload> workloads() { return all_workloads; }

const workload& workload_named(std::string_view name) {
  return *std::ranges::find(all_workloads, name, [](const workload& w) { return w.name; });
}

template <class Key>
dataset<Key>::dataset(std::vector<Key> keys)
    : keys_(std::move(keys)), sorted_(keys_), popularity_(keys_.size()) {
  std::ranges::sort(sorted_);
  random_source random(42);
  for (std::size_t i = keys_.size(); i > 1; --i) std::swap(keys_[i - 1], keys_[random.below(i)]);
}

template <class Key>
std::vector<Key> dataset<Key>::boundaries(int ranks) const {
  std::vector<Key> all;
  for (int r = 1; r < ranks; ++r) {
    const auto part = static_cast<std::size_t>(r);
    all.push_back(sorted_[sorted_.size() * part / static_cast<std::size_t>(ranks)]);
  }
  return all;
}

/// The upper half of a value is made of its key, the lower half of the write.
template <class Key, class Value>
Value make_value(const Key& key, std::uint64_t write) {
  const std::uint64_t number = (hash_of(key) & 0xffffffff00000000u) | (mix64(write) >> 32);
  if constexpr (std::is_same_v<Value, std::uint64_t>) {
    return number;
  } else {
    return to_text(number);
  }
}

template <class Key, class Value>
bool belongs_to(const Value& value, const Key& key) {
  const Value some = make_value<Key, Value>(key, loaded);
  if constexpr (std::is_same_v<Value, std::uint64_t>) {
    return (value ^ some) >> 32 == 0;
  } else {
    return value.view().substr(0, 8) == some.view().substr(0, 8);
  }
}

template <class Key, class Value>
request_stream<Key, Value>::request_stream(const dataset<Key>& data, const workload& what,
                                           int requester, int requesters, std::uint64_t run)
    : data_(data),
      what_(what),
      requester_(static_cast<std::uint64_t>(requester)),
      requesters_(static_cast<std::uint64_t>(requesters)),
      run_(run),
      random_(mix64(run) ^ static_cast<std::uint64_t>(requester)),
      last_write_(what.update > 0 ? data.size() / requesters_ + 1 : 0) {}

template <class Key, class Value>
request<Key, Value> request_stream<Key, Value>::next() {
  const int dice = static_cast<int>(random_.below(100));
  if (dice < what_.read) return read();
  if (dice < what_.read + what_.update) return update();
  if (dice < what_.read + what_.update + what_.insert) return insert();
  return {.kind = request_kind::scan,
          .key = data_.key(any_record()),
          .limit = static_cast<std::uint32_t>(1 + random_.below(scan_longest))};
}

template <class Key, class Value>
std::uint64_t request_stream<Key, Value>::any_record() {
  return what_.records == choice::uniform ? random_.below(data_.size())
                                          : data_.popularity().draw_scrambled(random_);
}

template <class Key, class Value>
std::uint64_t request_stream<Key, Value>::write_number(std::uint64_t count) const {
  return mix64(mix64(run_ + 1) ^ requester_) ^ count;
}

template <class Key, class Value>
request<Key, Value> request_stream<Key, Value>::read() {
  request<Key, Value> r{.kind = request_kind::read};
  std::uint64_t record = 0;
  if (what_.records == choice::latest) {
    // The last one most often: first what this requester inserted, then what was loaded.
    const std::uint64_t age = data_.popularity().draw(random_);
    if (age < inserted_.size()) {
      const inserted& recent = inserted_[inserted_.size() - 1 - age];
      r.key = recent.key;
      r.value = make_value<Key, Value>(recent.key, recent.write);
      r.exact = true;
      return r;
    }
    record = data_.size() - 1 - (age - inserted_.size());
  } else {
    record = any_record();
  }
  r.key = data_.key(record);
  if (!last_write_.empty() && record % requesters_ == requester_) {
    const std::uint64_t write = last_write_[record / requesters_];
    r.exact = write != 0;
    if (r.exact) r.value = make_value<Key, Value>(r.key, write);
  }
  return r;
}

template <class Key, class Value>
request<Key, Value> request_stream<Key, Value>::update() {
  // The record of our share that is nearest to one chosen as for a read.
  std::uint64_t record = any_record();
  record = record - record % requesters_ + requester_;
  if (record >= data_.size()) {
    if (record < requesters_) return read();  // Fewer records than requesters: none is ours.
    record -= requesters_;
  }
  const std::uint64_t write = write_number(++writes_);
  last_write_[record / requesters_] = write;
  const Key& key = data_.key(record);
  return {.kind = request_kind::update, .key = key, .value = make_value<Key, Value>(key, write)};
}

template <class Key, class Value>
request<Key, Value> request_stream<Key, Value>::insert() {
  const std::uint64_t write = write_number(++writes_);
  const Key key = fresh_key(data_.key(any_record()), run_, requester_, writes_);
  inserted_.push_back({key, write});
  return {.kind = request_kind::insert, .key = key, .value = make_value<Key, Value>(key, write)};
}

#define APPS_WORKLOAD_FOR(KEY, VALUE)                               \
  template class dataset<KEY>;                                      \
  template VALUE make_value<KEY, VALUE>(const KEY&, std::uint64_t); \
  template bool belongs_to<KEY, VALUE>(const VALUE&, const KEY&);   \
  template class request_stream<KEY, VALUE>

APPS_WORKLOAD_FOR(text_key, text_value);
APPS_WORKLOAD_FOR(std::uint64_t, std::uint64_t);

}  // namespace apps
