// SPDX-License-Identifier: Apache-2.0
// Calls, and is hardly called.
#include "interface.hpp"

SOJOURN_EXCEPTION(mpmd::shortage);
SOJOURN_EXCEPTION(mpmd::out_of_stock);

int main(int argc, char** argv) {
  sojourn::exports<mpmd::who>([] { return 'b'; });
  return sojourn::run(argc, argv, mpmd::run_claims);
}
