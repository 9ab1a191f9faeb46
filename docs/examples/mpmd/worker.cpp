// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

struct tally {
  long sum;
  explicit tally(long start) : sum(start) {}
  long add(long more) { return sum += more; }
  long value() const { return sum; }
};

long squared(int x) { return static_cast<long>(x) * x; }

int main(int argc, char** argv) {
  sojourn::exports<square>(&squared);
  sojourn::exports<tally_interface::create>();
  sojourn::exports<tally_interface::add>(&tally::add);
  sojourn::exports<tally_interface::value>(&tally::value);
  return sojourn::run(argc, argv, [] {});  // serves calls until all of the job is done
}
