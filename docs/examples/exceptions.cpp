// SPDX-License-Identifier: Apache-2.0
// Exceptions that cross ranks: docs/migration.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

using namespace sojourn;

struct overdrawn {  // trivially copyable: its bytes travel
  long missing_cents;
};
SOJOURN_EXCEPTION(overdrawn);

struct unregistered : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct account {
  long cents = 100;
  void withdraw(long amount) {
    if (amount < 0) throw std::invalid_argument("an amount is not negative");
    if (amount > 1'000'000) throw unregistered("ask at the desk");
    if (amount > cents) throw overdrawn{amount - cents};
    cents -= amount;
  }
};

void withdraw(global_ptr<account> a, long amount, via how) {
  a.call<&account::withdraw>(how, amount);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    auto a = make<account>(rank_count() - 1);
    for (via how : {via::rpc, via::migrate}) {
      for (long amount : {-1L, 150L, 2'000'000L}) {
        try {
          activate(withdraw, a, amount, how);
        } catch (const std::invalid_argument& e) {
          std::printf("invalid_argument: %s\n", e.what());
        } catch (const overdrawn& e) {
          std::printf("overdrawn by %ld\n", e.missing_cents);
        } catch (const remote_exception& e) {
          std::printf("%s on rank %d: %s\n", e.type_name().c_str(), e.rank(), e.what());
        } catch (const unregistered& e) {  // in a job of one rank nothing was remote
          std::printf("unregistered on rank 0: %s\n", e.what());
        }
      }
    }
    destroy(a);
  });
}
