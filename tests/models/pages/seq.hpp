// SPDX-License-Identifier: Apache-2.0
// Sequential consistency. Either one rank has a copy of a page and may store to it, or several
// ranks have copies and none of them may. The home of the page serves one request at a time; it
// knows the owner, and which ranks have copies.
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
