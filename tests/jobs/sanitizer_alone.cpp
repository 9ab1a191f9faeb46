// SPDX-License-Identifier: Apache-2.0
// Linked as a program that is built for a sanitizer, which the library is not.
#include <sojourn/sojourn.hpp>

extern "C" void __asan_init() {}

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {});
}
