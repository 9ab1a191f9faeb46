// SPDX-License-Identifier: Apache-2.0
// What collective operations do with values, whose types only their callers know. The operations
// themselves (src/rpc) see bytes, and which of these go where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/calls/marshal.hpp"
#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/collective_plan.hpp"
#include "sojourn/detail/leaving.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/future.hpp"
#include "sojourn/team.hpp"

namespace sojourn::detail {

using value_bytes = std::vector<std::byte>;
using byte_span = std::span<const std::byte>;

/// One rank's values in one operation. Whatever these functions throw ends the operation with that
/// exception on all ranks that wait for its result.
class collective_values {
 public:
  virtual ~collective_values() = default;
  /// Takes the contribution of a child and all below it, or of any member (exchange). Children are
  /// taken in the order of their numbers.
  virtual void absorb(int from, value_bytes&& theirs);
  /// What goes to the parent, or to the root, once all children's have been taken.
  virtual byte_span up();
  /// Takes what comes from above.
  virtual void take(value_bytes&& from_above);
  /// What goes to a child, or to a member (exchange).
  virtual byte_span down(int to);
};

/// Values of operations that were begun and that nobody waits in.
class outstanding_collective {
 public:
  virtual ~outstanding_collective() = default;
  virtual collective_values& values() = 0;
  /// Sends the result, or `failure` if that is not null, to a ticket.
  virtual void complete(ticket_id result, const std::exception_ptr& failure) = 0;
};

/// Does the rank's part of an operation; suspends until it is done. Throws what any rank's values
/// threw, and rank_lost.
void do_collective(const collective_plan& plan, collective_values& values, const team& among);
/// Does what can be done at once, and the rest as contributions come. Returns the ticket of the
/// result.
ticket_id begin_collective(const collective_plan& plan,
                           std::unique_ptr<outstanding_collective> work, const team& among);
/// The plan with a root. Throws sojourn::error when there is no such member.
collective_plan rooted(collective_plan plan, int root, const team& among);
[[noreturn]] void values_disagree(std::size_t came, std::size_t expected);
[[noreturn]] void wrong_number_of_values(std::size_t values, std::size_t members);
[[noreturn]] void different_lengths(std::size_t a, std::size_t b);

template <class T>
inline constexpr bool is_gathered = marshals_to_stay<T>;

template <class T>
value_bytes bytes_of_value(const T& value) {
  value_bytes bytes(measure(value).whole);
  writer to(bytes.data(), bytes.size());
  save_value(to, value);
  return bytes;
}
template <class T>
T value_of_bytes(byte_span bytes) {
  if constexpr (travels<T>) {
    if (bytes.size() != sizeof(T)) values_disagree(bytes.size(), sizeof(T));
    room<T> copy;
    std::memcpy(static_cast<void*>(&copy.value), bytes.data(), sizeof(T));
    return std::move(copy.value);
  } else {
    reader from(bytes.data(), bytes.size());
    T value = make_value<T>(from);
    from.expect_end();
    return value;
  }
}

/// A value, and its bytes as messages hold them.
template <class T>
class sent_value {
 public:
  explicit sent_value(T&& value) : value_(std::in_place, std::move(value)) {}

  T& operator*() { return *value_; }
  void set(T&& value) {
    replace(std::move(value));
    bytes_.clear();
  }
  byte_span bytes() {
    if constexpr (travels<T>) {
      check_leaving(leaves_as::contribution, several_ranks, std::addressof(*value_));
      return {reinterpret_cast<const std::byte*>(std::addressof(*value_)), sizeof(T)};
    } else {
      if (bytes_.empty()) bytes_ = bytes_of_value(*value_);
      return bytes_;
    }
  }
  /// Becomes the value that the bytes hold.
  void take(value_bytes&& bytes) {
    if constexpr (travels<T>) {
      if (bytes.size() != sizeof(T)) values_disagree(bytes.size(), sizeof(T));
      std::memcpy(static_cast<void*>(std::addressof(*value_)), bytes.data(), sizeof(T));
    } else {
      replace(value_of_bytes<T>(bytes));
      bytes_ = std::move(bytes);
    }
  }

 private:
  void replace(T&& value) {
    if constexpr (std::is_move_assignable_v<T>) {
      *value_ = std::move(value);
    } else {
      value_.emplace(std::move(value));
    }
  }

  std::optional<T> value_;  ///< Always there; the elements of maps cannot be assigned to.
  value_bytes bytes_;
};

/// op(a, b) as a value of its own, for `op` may return a reference to one of them.
template <class T, class Op>
T combined(Op& op, T&& a, T&& b) {
  return op(std::move(a), std::move(b));
}

// ---- Values one after another ------------------------------------------------------------------

/// Stands before a marshalled value among others; both are multiples of 16 bytes.
struct block_header {
  std::uint64_t bytes;
  std::uint64_t unused;
};

template <class T>
void append_value(value_bytes& to, const T& value) {
  if constexpr (travels<T>) {
    check_leaving(leaves_as::contribution, several_ranks, std::addressof(value));
    const std::size_t at = to.size();
    to.resize(at + sizeof(T));
    std::memcpy(to.data() + at, std::addressof(value), sizeof(T));
  } else {
    const value_bytes bytes = bytes_of_value(value);
    const block_header header{bytes.size(), 0};
    const std::size_t at = to.size();
    to.resize(at + sizeof header + bytes.size() + padding(bytes.size(), sizeof header));
    std::memcpy(to.data() + at, &header, sizeof header);
    if (!bytes.empty()) std::memcpy(to.data() + at + sizeof header, bytes.data(), bytes.size());
  }
}

/// Throws malformed_message when there are no such bytes.
byte_span next_block(byte_span& left);

template <class T>
std::vector<T> values_of_bytes(byte_span bytes, int count) {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(count));
  if constexpr (travels<T>) {
    const std::size_t expected = sizeof(T) * static_cast<std::size_t>(count);
    if (bytes.size() != expected) values_disagree(bytes.size(), expected);
  }
  for (int i = 0; i < count; ++i) {
    if constexpr (travels<T>) {
      values.push_back(
          value_of_bytes<T>(bytes.subspan(static_cast<std::size_t>(i) * sizeof(T), sizeof(T))));
    } else {
      values.push_back(value_of_bytes<T>(next_block(bytes)));
    }
  }
  return values;
}

// ---- The operations ----------------------------------------------------------------------------

class no_values final : public collective_values {
 public:
  explicit no_values(const team_view&) {}
  void result() {}
};

template <class T>
class broadcast_value final : public collective_values {
 public:
  broadcast_value(const team_view&, T&& value) : value_(std::move(value)) {}
  void take(value_bytes&& from_above) override { value_.take(std::move(from_above)); }
  byte_span down(int) override { return value_.bytes(); }
  T result() { return std::move(*value_); }

 private:
  sent_value<T> value_;
};

/// The value of this rank and all below it, and then that of all.
template <class T, class Op>
class reduction : public collective_values {
 public:
  reduction(const team_view&, T&& value, Op&& op) : op_(std::move(op)), value_(std::move(value)) {}
  void absorb(int, value_bytes&& theirs) override {
    value_.set(combined<T>(op_, std::move(*value_), value_of_bytes<T>(theirs)));
  }
  byte_span up() override { return value_.bytes(); }
  void take(value_bytes&& from_above) override { value_.take(std::move(from_above)); }
  byte_span down(int) override { return value_.bytes(); }
  T result() { return std::move(*value_); }

 private:
  [[no_unique_address]] Op op_;
  sent_value<T> value_;
};
template <class T, class Op>
class reduction_to_root final : public reduction<T, Op> {
 public:
  reduction_to_root(const team_view& among, T&& value, Op&& op, int root)
      : reduction<T, Op>(among, std::move(value), std::move(op)), is_root_(among.me == root) {}
  std::optional<T> result() {
    if (!is_root_) return std::nullopt;
    return reduction<T, Op>::result();
  }

 private:
  bool is_root_;
};

/// On the way up it keeps what precedes each child among this rank and those below it; on the way
/// down comes what precedes all these.
template <class T, class Op>
class prefixes : public collective_values {
 public:
  prefixes(const team_view&, T&& value, Op&& op)
      : op_(std::move(op)), value_(value), below_(std::move(value)) {}
  void absorb(int from, value_bytes&& theirs) override {
    T before = *below_;
    below_.set(combined<T>(op_, std::move(*below_), value_of_bytes<T>(theirs)));
    before_.push_back({from, std::move(before)});
  }
  byte_span up() override { return below_.bytes(); }
  void take(value_bytes&& from_above) override {
    before_all_.emplace(value_of_bytes<T>(from_above));
  }
  byte_span down(int to) override {
    for (const child& c : before_) {
      if (c.number == to) to_child_.emplace(after_all_before(T(c.before)));
    }
    return to_child_->bytes();
  }

 protected:
  T inclusive() { return after_all_before(std::move(value_)); }
  std::optional<T>& before_all() { return before_all_; }

 private:
  T after_all_before(T&& mine) {
    if (!before_all_) return std::move(mine);
    return combined<T>(op_, T(*before_all_), std::move(mine));
  }

  struct child {
    int number;
    T before;
  };
  [[no_unique_address]] Op op_;
  T value_;
  sent_value<T> below_;
  std::vector<child> before_;
  std::optional<T> before_all_;
  std::optional<sent_value<T>> to_child_;
};
template <class T, class Op>
class inclusive_prefixes final : public prefixes<T, Op> {
 public:
  using prefixes<T, Op>::prefixes;
  T result() { return this->inclusive(); }
};
template <class T, class Op>
class exclusive_prefixes final : public prefixes<T, Op> {
 public:
  exclusive_prefixes(const team_view& among, T&& value, T&& first, Op&& op)
      : prefixes<T, Op>(among, std::move(value), std::move(op)) {
    if (among.me == 0) this->before_all().emplace(std::move(first));
  }
  T result() { return std::move(*this->before_all()); }
};

/// The values of this rank and all below it, one after the other, and then those of all.
template <class T>
class gathered_values final : public collective_values {
 public:
  static constexpr int everywhere = -1;
  gathered_values(const team_view& among, T&& value, int root = everywhere)
      : count_(root == everywhere || among.me == root ? among.count : 0), mine_(std::move(value)) {}
  void absorb(int, value_bytes&& theirs) override {
    begin();
    all_.insert(all_.end(), theirs.begin(), theirs.end());
  }
  byte_span up() override {
    begin();
    return all_;
  }
  void take(value_bytes&& from_above) override { all_ = std::move(from_above); }
  byte_span down(int) override { return up(); }
  std::vector<T> result() {
    begin();
    return values_of_bytes<T>(count_ == 0 ? byte_span{} : byte_span(all_), count_);
  }

 private:
  void begin() {
    if (!std::exchange(begun_, true)) append_value(all_, mine_);
  }

  int count_;
  bool begun_ = false;
  T mine_;
  value_bytes all_;
};

template <class T>
class exchanged_values final : public collective_values {
 public:
  exchanged_values(const team_view& among, std::vector<T>&& values)
      : me_(among.me), mine_(std::move(values)), theirs_(static_cast<std::size_t>(among.count)) {}
  void absorb(int from, value_bytes&& theirs) override {
    theirs_[static_cast<std::size_t>(from)] = std::move(theirs);
  }
  byte_span down(int to) override {
    check();
    const T& value = mine_[static_cast<std::size_t>(to)];
    if constexpr (travels<T>) {
      check_leaving(leaves_as::contribution, several_ranks, std::addressof(value));
      bytes_.resize(sizeof(T));
      std::memcpy(bytes_.data(), std::addressof(value), sizeof(T));
    } else {
      bytes_ = bytes_of_value(value);
    }
    return bytes_;
  }
  std::vector<T> result() {
    check();
    const auto me = static_cast<std::size_t>(me_);
    std::vector<T> all;
    all.reserve(theirs_.size());
    for (std::size_t r = 0; r < theirs_.size(); ++r) {
      if (r == me) {
        all.push_back(std::move(mine_[me]));
      } else {
        all.push_back(value_of_bytes<T>(theirs_[r]));
      }
    }
    return all;
  }

 private:
  void check() const {
    if (mine_.size() != theirs_.size()) wrong_number_of_values(mine_.size(), theirs_.size());
  }

  int me_;
  std::vector<T> mine_;
  std::vector<value_bytes> theirs_;
  value_bytes bytes_;
};

// ---- Running them ------------------------------------------------------------------------------

template <class Values>
class outstanding_values final : public outstanding_collective {
 public:
  using result_type = decltype(std::declval<Values&>().result());

  template <class... A>
  explicit outstanding_values(const team_view& among, A&&... with)
      : values_(among, std::forward<A>(with)...) {}
  collective_values& values() override { return values_; }
  void complete(ticket_id result, const std::exception_ptr& failure) override {
    send_outcome<result_type>(result, [&]() -> result_type {
      if (failure != nullptr) std::rethrow_exception(failure);
      return values_.result();
    });
  }

 private:
  Values values_;
};

[[noreturn]] void no_members();
/// The members of a team. Throws sojourn::error when it has none.
inline const team_view& members_of(const team& among) {
  if (among.record() == nullptr) [[unlikely]]
    no_members();
  return *among.record();
}

template <class Values, class... A>
auto do_with(const collective_plan& plan, const team& among, A&&... with) {
  Values values(members_of(among), std::forward<A>(with)...);
  do_collective(plan, values, among);
  return values.result();
}
template <class Values, class... A>
auto begin_with(const collective_plan& plan, const team& among, A&&... with) {
  using work = outstanding_values<Values>;
  return future_access::of_ticket<future<typename work::result_type>>(begin_collective(
      plan, std::make_unique<work>(members_of(among), std::forward<A>(with)...), among));
}

}  // namespace sojourn::detail
