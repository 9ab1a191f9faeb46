// SPDX-License-Identifier: Apache-2.0
// Vectors of three numbers.
#pragma once

namespace apps::nine {

struct vec {
  double x = 0;
  double y = 0;
  double z = 0;

  vec& operator+=(const vec& b) {
    x += b.x;
    y += b.y;
    z += b.z;
    return *this;
  }
  vec& operator-=(const vec& b) {
    x -= b.x;
    y -= b.y;
    z -= b.z;
    return *this;
  }
  friend vec operator+(vec a, const vec& b) { return a += b; }
  friend vec operator-(vec a, const vec& b) { return a -= b; }
  friend vec operator*(double s, const vec& a) { return {s * a.x, s * a.y, s * a.z}; }
};

inline double dot(const vec& a, const vec& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

}  // namespace apps::nine
