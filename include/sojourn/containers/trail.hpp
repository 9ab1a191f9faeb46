// SPDX-License-Identifier: Apache-2.0
// What a computation leaves on its way from rank to rank, and has when it is home again.
//
//     trail<char> walk(kmers all, kmer from) {        // activate(walk, all, from) goes along
//       trail<char> bases;
//       while (auto next = all.find(via::migrate, from)) { bases.push_back(…); from = …; }
//       return bases;
//     }
//     const std::vector<char> contig = activate(walk, all, from).take();
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sojourn/calls/travels.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

namespace containers {

/// Items that were left on a rank.
template <class T>
class piece_of_trail {
 public:
  struct content {
    std::vector<T> items;
    global_ptr<piece_of_trail> before;
  };
  explicit piece_of_trail(global_ptr<piece_of_trail> before) { all_.before = before; }
  void append(const T* first, std::size_t count) {
    all_.items.insert(all_.items.end(), first, first + count);
  }
  /// Destroys the piece.
  static content take(global_ptr<piece_of_trail> p) {
    content all = std::move(p.local()->all_);
    destroy(p);
    return all;
  }

 private:
  content all_;
};

}  // namespace containers

/// A sequence that travels, also when it is long: as a local variable of an activation that
/// migrates, as its result, as an argument. The latest items, up to `Along` of them, are in the
/// object and go along; when there are more, they are left on the rank where it is then, and take()
/// fetches them. T travels. take() is called once: what nobody takes stays where it is until the
/// job ends. After a copy, one of the two is used.
template <class T, std::size_t Along = std::max<std::size_t>(1, 64 / sizeof(T))>
class trail {
  static_assert(travels<T>, "sojourn: the items of a trail must travel");
  static_assert(Along > 0);
  using piece = containers::piece_of_trail<T>;

 public:
  using value_type = T;

  trail() = default;
  /// Does not suspend. Errors: std::bad_alloc.
  void push_back(const T& item) {
    if (count_ == Along) leave();
    along_[count_++] = item;
    ++size_;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// All items in their order; then there are none. Suspends: when some were left on other ranks, a
  /// call for each change of the rank. Errors: rank_lost.
  std::vector<T> take() {
    std::vector<T> all(size_);
    auto end = all.end();
    const auto put = [&](const T* first, std::size_t count) {
      end = std::copy_backward(first, first + count, end);
    };
    put(along_.data(), count_);
    while (last_) {
      const auto piece_of_it = rpc(last_.home(), piece::take, last_).get();
      last_ = piece_of_it.before;
      put(piece_of_it.items.data(), piece_of_it.items.size());
    }
    count_ = 0;
    size_ = 0;
    return all;
  }

 private:
  /// Not inlined: its words would stay in a frame that migrates.
  [[gnu::noinline]] void leave() {
    if (!last_ || !last_.is_local()) last_ = make<piece>(rank_me(), last_);
    last_.local()->append(along_.data(), count_);
    count_ = 0;
  }

  std::array<T, Along> along_{};
  std::uint32_t count_ = 0;  ///< Of along_.
  std::uint64_t size_ = 0;
  global_ptr<piece> last_;  ///< What was left last; it knows what was left before.
};

template <class T, std::size_t Along>
inline constexpr bool travels<trail<T, Along>> = true;

}  // namespace sojourn
