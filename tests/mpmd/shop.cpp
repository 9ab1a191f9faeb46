// SPDX-License-Identifier: Apache-2.0
#include "interface.hpp"

SOJOURN_EXCEPTION(mpmd::out_of_stock);
SOJOURN_EXCEPTION(mpmd::shortage);

using namespace mpmd;

int main(int argc, char** argv) {
  // In another order than the farm's.
  exports<bump>([](global_ptr<counter> c, long more) {
    return c.call<counter_interface::add>(via::migrate, more);
  });
  exports<price>([](int item) { return 10 + item; });
  exports<recurse>([](rank_t other, int depth) {
    return depth == 0 ? 0 : 1 + rpc(other, recurse(), rank_me(), depth - 1).get();
  });
  exports<stops>([](stop_token token) { return token.wait(); });
  exports<who>([] { return 's'; });
  return run(argc, argv, run_claims);
}
