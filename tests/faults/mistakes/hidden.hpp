// SPDX-License-Identifier: Apache-2.0
// A class that travels, and whose private members may hold an address of the rank's own memory.
#pragma once

class total {
 public:
  explicit total(long value, const long* of = nullptr) : value_(value), of_(of) {}
  long value() const { return value_; }
  const long* of() const { return of_; }

 private:
  long value_;
  const long* of_;
};

/// Of a number that lies in the private heap.
inline total total_of_private(long value) { return total(value, new long(value)); }
