// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/news.hpp"

#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

namespace {

/// Flag of the message: its receiver may not have left the last barrier yet.
constexpr std::uint8_t tells_departure = 0x80;

}  // namespace

news::news(exchange& x, barriers& b) : x_(x), barriers_(b), peers_(x.host.memory()) {
  const auto ranks = static_cast<std::size_t>(x.ranks);
  for (std::size_t r = 0; r < ranks; ++r) peers_.emplace_back(ranks, x.host.memory());
}

/// Notes that a rank which has left a barrier knows what all ranks knew there.
void news::forget_what_all_know(int to, ordered_with with) {
  take_later(of(to).told[static_cast<std::size_t>(with)],
             may_lag(to, with) ? barriers_.known_to_who_lags() : x_.barrier);
}

bool news::any(int to, ordered_with with) {
  if (may_lag(to, with)) return true;
  std::uint64_t& lacks_nothing = of(to).lacks_nothing[static_cast<std::size_t>(with)];
  if (lacks_nothing == x_.log.changes()) return false;
  forget_what_all_know(to, with);
  const vector_clock& told = of(to).told[static_cast<std::size_t>(with)];
  const vector_clock& known = x_.log.known();
  for (std::size_t q = 0; q < known.size(); ++q)
    if (known[q] > told[q]) return true;
  lacks_nothing = x_.log.changes();
  return false;
}

void news::write(int to, ordered_with with) {
  forget_what_all_know(to, with);
  const bool lags = may_lag(to, with);
  message_writer& out = x_.begin(
      {.what = page_message::news,
       .flag = static_cast<std::uint8_t>(lags ? barriers_.last_departure() | tells_departure : 0)});
  if (lags) out.put_clock(x_.barrier);
  x_.log.write(out, of(to).told[static_cast<std::size_t>(with)], x_.log.known(),
               lags ? std::span<const interval>(x_.barrier) : std::span<const interval>());
}

void news::told(int to, ordered_with with) {
  const auto i = static_cast<std::size_t>(with);
  of(to).told[i] = x_.log.known();
  of(to).lacks_nothing[i] = x_.log.changes();
  of(to).epoch[i] = x_.epoch;
}

void news::receive(page_message_reader& from, const message_head& head) {
  vector_clock all(x_.host.memory());
  const bool tells = (head.flag & tells_departure) != 0;
  if (tells) {
    all.resize(static_cast<std::size_t>(x_.ranks));
    from.take_clock(all);
  }
  x_.learn(from, all);
  if (head.epoch <= x_.epoch || !holds(rule::depart_by_news)) return;
  from.require(tells && head.epoch == x_.epoch + 1, "comes from behind a barrier that is not over");
  barriers_.depart_early(from, all, head.flag & static_cast<std::uint8_t>(~tells_departure));
}

}  // namespace sojourn::detail::pages
