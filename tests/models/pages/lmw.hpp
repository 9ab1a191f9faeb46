// SPDX-License-Identifier: Apache-2.0
// Lazy release consistency with several writers of a page at a time. Its parts are
// lmw_intervals.cpp (what becomes of stores: twins, diffs, notices), lmw.cpp (faults, and the
// messages that serve them) and lmw_barriers.cpp (exclusive pages, and the collection of diffs).
#pragma once

#include "machine.hpp"

namespace page_model {

class lmw_machine final : public machine {
 public:
  lmw_machine(const program& p, std::optional<rule> broken);

 private:
  void fault(int r, int page, bool stores) override;
  void receive_protocol_message(int r, int from, const message& m) override;
  void close_interval(int r) override;
  void take_in(int r, const message& m) override;
  bool may_arrive(int r) const override;
  bool depart(int r, const message& m) override;

  lmw_page& lmw_at(int r, int page) { return page_at(r, page).lmw; }
  const lmw_page& lmw_at(int r, int page) const { return page_at(r, page).lmw; }

  // Intervals.
  bool stored_to(int r, int page, int interval) const {
    return s.intervals[r][interval].pages.contains(page);
  }
  bool is_valid(int r, int page) const;
  void invalidate(int r, int page, int of_rank, int interval);
  void share(int r, int page);
  void open_for_stores(int r, int page);
  void make_diff(int r, int page);
  static void drop_twin(lmw_page& lmw);
  void renew_twin(int r, int page);
  void end_sticking(int r, int page);
  void drop_copy(int r, int page);

  // Faults.
  void open(int r, int page);
  void start_fetch(int r, int page);
  bool ask_for_diffs(int r, int page);
  int first_to_ask_for(int r, int page, int of_rank) const;
  bool got_diffs(int r, int page) const;
  void count_reply(int r, int page);
  void apply_diffs(int r, int page);
  // Serving them.
  void receive_page_request(int r, const message& m);
  void receive_page(int r, const message& m);
  void receive_diff_request(int r, int from, const message& m);
  void ask_keeper(int r, int page, int asker, bool stores);
  void reply_with_page(int r, int asker, int page);
  bool has_own(int r, int page) const;

  // Barriers.
  std::optional<int> only_writer(int r, int page) const;
  std::optional<int> last_writer(int r, int page, const rank_vector& after) const;
  void find_exclusive_pages(int r);
  void fetch_what_must_be(int r);
  // Collection.
  void begin_collection(int r);
  void maybe_done(int r);
  void throw_diffs_away(int r);
};

}  // namespace page_model
