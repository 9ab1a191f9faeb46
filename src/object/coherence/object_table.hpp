// SPDX-License-Identifier: Apache-2.0
// What a rank knows of each object of some kind, found by the object's address.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace sojourn::detail::coherence {

/// What is known of an object stays at its address until it is erased. Objects come and go with
/// nearly every message, so the memory for it is kept and used again.
template <class T>
class object_table {
  struct node {
    std::uint64_t address;
    node* next;
    T value{};
  };

 public:
  object_table() = default;
  object_table(const object_table& other) {
    other.each(
        [this](std::uint64_t address, const T& value) { find_or_add(address).first = value; });
  }
  object_table& operator=(const object_table& other) {
    if (this == &other) return *this;
    object_table copy(other);
    swap(copy);
    return *this;
  }
  object_table(object_table&& other) noexcept { swap(other); }
  object_table& operator=(object_table&& other) noexcept {
    swap(other);
    return *this;
  }
  ~object_table() {
    for (node* n : buckets_) {
      while (n != nullptr) std::destroy_at(std::exchange(n, n->next));
    }
  }

  std::size_t size() const { return size_; }

  T* find(std::uint64_t address) { return const_cast<T*>(std::as_const(*this).find(address)); }
  const T* find(std::uint64_t address) const {
    // What is done about an object asks for it again and again.
    if (found_ != nullptr && found_->address == address) return &found_->value;
    if (size_ == 0) return nullptr;
    for (node* n = buckets_[bucket_of(address)]; n != nullptr; n = n->next) {
      if (n->address != address) continue;
      found_ = n;
      return &n->value;
    }
    return nullptr;
  }
  /// What is known of the object, which is T{} if nothing was; true: nothing was.
  std::pair<T&, bool> find_or_add(std::uint64_t address) {
    if (T* const known = find(address)) return {*known, false};
    if (size_ >= buckets_.size()) grow();
    node*& first = buckets_[bucket_of(address)];
    found_ = first = ::new (take_room()) node{address, first};
    ++size_;
    return {first->value, true};
  }
  void erase(std::uint64_t address) {
    if (size_ == 0) return;
    for (node** at = &buckets_[bucket_of(address)]; *at != nullptr; at = &(*at)->next) {
      if ((*at)->address != address) continue;
      node* const gone = *at;
      *at = gone->next;
      if (found_ == gone) found_ = nullptr;
      std::destroy_at(gone);
      free_.push_back(gone);
      --size_;
      return;
    }
  }
  /// Calls visit(address, what is known). Requires: it adds and erases nothing.
  template <class Visit>
  void each(Visit visit) const {
    for (const node* n : buckets_) {
      for (; n != nullptr; n = n->next) visit(n->address, n->value);
    }
  }

 private:
  struct room {
    alignas(node) std::byte bytes[sizeof(node)];
  };

  std::size_t bucket_of(std::uint64_t address) const {
    return (address * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(buckets_.size()));
  }
  node* take_room() {
    if (free_.empty()) {
      const std::size_t nodes = std::clamp<std::size_t>(size_, 2, 64);
      chunks_.push_back(std::make_unique_for_overwrite<room[]>(nodes));
      for (std::size_t i = nodes; i-- > 0;)
        free_.push_back(reinterpret_cast<node*>(&chunks_.back()[i]));
    }
    node* const taken = free_.back();
    free_.pop_back();
    return taken;
  }
  void grow() {
    std::vector<node*> old(buckets_.empty() ? 4 : buckets_.size() * 4);
    old.swap(buckets_);
    for (node* n : old) {
      while (n != nullptr) {
        node* const moved = std::exchange(n, n->next);
        node*& first = buckets_[bucket_of(moved->address)];
        moved->next = first;
        first = moved;
      }
    }
  }
  void swap(object_table& other) noexcept {
    buckets_.swap(other.buckets_);
    chunks_.swap(other.chunks_);
    free_.swap(other.free_);
    std::swap(size_, other.size_);
    std::swap(found_, other.found_);
  }

  std::vector<node*> buckets_;  ///< None, or a power of two.
  std::vector<std::unique_ptr<room[]>> chunks_;
  std::vector<node*> free_;
  std::size_t size_ = 0;
  mutable node* found_ = nullptr;  ///< What was found last, if it is there yet.
};

}  // namespace sojourn::detail::coherence
