// SPDX-License-Identifier: Apache-2.0
// Exceptions in a program that is linked statically.
#include <stdexcept>
#include <string>

#include "check.hpp"

using namespace sojourn;

namespace {

int refuse(int x) { throw std::runtime_error("not " + std::to_string(x)); }

template <class Call>
std::string thrown_by(Call call) {
  try {
    call();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "nothing";
}

void they_are_caught_where_they_are_thrown() {
  CHECK_EQUAL(thrown_by([] { refuse(1); }), "not 1");
  CHECK_EQUAL(thrown_by([] { activate(refuse, 2); }), "not 2");
}

void they_come_back_from_calls() {
  CHECK_EQUAL(thrown_by([] { rpc(rank_count() - 1, refuse, 3).get(); }), "not 3");
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("they are caught where they are thrown", they_are_caught_where_they_are_thrown);
    check::claim("they come back from calls", they_come_back_from_calls);
    return check::verdict();
  });
}
