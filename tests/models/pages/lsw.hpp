// SPDX-License-Identifier: Apache-2.0
// Lazy release consistency with one writer of a page at a time. The token of a page goes from owner
// to owner, together with the whole page. Copies elsewhere grow old, and are left to their readers
// until these acquire.
#pragma once

#include "machine.hpp"

namespace page_model {

class lsw_machine final : public machine {
 public:
  lsw_machine(const program& p, std::optional<rule> broken);

 private:
  void fault(int r, int page, bool stores) override;
  void receive_protocol_message(int r, int from, const message& m) override;
  void used(int r, int page) override;
  void close_interval(int r) override;
  void take_in(int r, const message& m) override;

  void open_to_waiting_loads(int r, int page);
  void serve(int r, int page);
  void send_copy(int r, int reader, int page);
  void send_token(int r, int page);
  void receive_token(int r, const message& m);
  void receive_copy(int r, const message& m);
};

}  // namespace page_model
