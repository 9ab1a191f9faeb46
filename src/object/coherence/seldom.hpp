// SPDX-License-Identifier: Apache-2.0
// A list that mostly stays empty, and then takes no more than a pointer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace sojourn::detail::coherence {

template <class T>
class seldom {
 public:
  seldom() = default;
  seldom(const seldom& other)
      : list_(other.empty() ? nullptr : std::make_unique<std::vector<T>>(*other.list_)) {}
  seldom(seldom&&) noexcept = default;
  seldom& operator=(const seldom& other) {
    list_ = other.empty() ? nullptr : std::make_unique<std::vector<T>>(*other.list_);
    return *this;
  }
  seldom& operator=(seldom&&) noexcept = default;
  ~seldom() = default;

  bool empty() const { return list_ == nullptr || list_->empty(); }
  std::size_t size() const { return list_ == nullptr ? 0 : list_->size(); }
  const T* begin() const { return list_ == nullptr ? nullptr : list_->data(); }
  const T* end() const { return begin() + size(); }
  /// Requires: it is not empty.
  const T& front() const { return list_->front(); }
  const T& back() const { return list_->back(); }

  void push_back(const T& element) {
    if (list_ == nullptr) list_ = std::make_unique<std::vector<T>>();
    list_->push_back(element);
  }
  /// Requires: it is not empty.
  void pop_back() { list_->pop_back(); }
  void pop_front() { list_->erase(list_->begin()); }
  void remove(const T& element) {
    if (list_ != nullptr) std::erase(*list_, element);
  }
  void clear() { list_.reset(); }

 private:
  std::unique_ptr<std::vector<T>> list_;
};

}  // namespace sojourn::detail::coherence
