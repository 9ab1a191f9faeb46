// SPDX-License-Identifier: Apache-2.0
// Sequential consistency: either one rank has a copy and may store to it, or several have copies
// and none may. A page's home serves one request at a time, and knows the owner and who has copies.
#pragma once

#include "machine.hpp"

namespace page_model {

class seq_machine final : public machine {
 public:
  seq_machine(const program& p, std::optional<rule> broken);

 private:
  void fault(int r, int page, bool stores) override;
  void receive_protocol_message(int r, int from, const message& m) override;
  void used(int r, int page) override;
  void hold(int r, int page, int t) override;
  void end_hold(int r, int page, int t) override;

  void maybe_open(int r, int page);
  void confirm(int r, int page);
  void take_away(int r, int page);
  message data_of(int r, int page) const;
  // At home.
  void serve_next(int home, int page);
  void serve_load(int home, int page, int asker);
  void serve_store(int home, int page, int asker, bool has_data);
};

}  // namespace page_model
