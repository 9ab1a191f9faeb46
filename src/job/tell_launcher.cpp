// SPDX-License-Identifier: Apache-2.0
#include "job/tell_launcher.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fiber/fork_links.hpp"
#include "object/call_places.hpp"
#include "object/sites.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

/// Lets `write` add to what finished ranks have told. Not when another rank keeps the lock, which
/// it holds for microseconds: one that died with it must not stop this one.
template <class Write>
void add_to_told(job_segment& s, Write write) {
  for (int tries = 0; s.telling_locked.exchange(1) != 0; ++tries) {
    if (tries == 1000) return;
    sched_yield();
  }
  write();
  s.telling_locked.store(0);
}

/// Adds to the job's segment what the entries of SOJOURN_VIA matched on this rank, so that the
/// launcher tells of it once.
void tell_of_settings(job_segment& s) {
  // A single rank has no access to another one's objects, and the setting may be for larger jobs.
  if (job.count == 1) return;
  const std::vector<site_rule_use> uses = site_rule_uses();
  add_to_told(s, [&] {
    for (std::size_t i = 0; i < std::min(uses.size(), setting_uses_max); ++i) {
      setting_use& told = s.uses[i];
      const site_rule_use& use = uses[i];
      if (i == s.use_count) {
        std::snprintf(told.name, sizeof told.name, "%s", std::string(use.name).c_str());
        told.edits = ~0u;
        ++s.use_count;
      }
      if (use.matched) told.matched = 1;
      if (!use.nearest.empty() && use.edits < told.edits) {
        told.edits = static_cast<std::uint32_t>(use.edits);
        std::snprintf(told.nearest, sizeof told.nearest, "%s", use.nearest.c_str());
      }
    }
  });
}

/// The same of the places where this rank forked.
void tell_of_forks(job_segment& s) {
  const std::vector<fork_site_use> uses = fork_site_uses();
  if (uses.empty()) return;
  add_to_told(s, [&] {
    const std::uint32_t part = s.ranks[job.me].part;
    for (const fork_site_use& use : uses) {
      fork_site_told* const end = s.fork_sites + s.fork_site_count;
      fork_site_told* told = std::find_if(s.fork_sites, end, [&](const fork_site_told& one) {
        return one.site == use.site && one.part == part;
      });
      if (told == end) {
        if (s.fork_site_count < fork_sites_told_max) {
          ++s.fork_site_count;
        } else {
          told = std::min_element(s.fork_sites, end,
                                  [](const auto& a, const auto& b) { return a.forks < b.forks; });
          if (told->forks >= use.forks) continue;
        }
        *told = {use.site, use.code, 0, 0, 0, part, 0, 0};
      }
      told->forks += use.forks;
      told->blocked += use.blocked;
      told->bytes_cut += use.bytes_cut;
      told->linked_ranks += use.is_linked ? 1 : 0;
      ++told->ranks;
    }
  });
}

/// The same of the places where this rank called objects of others, when SOJOURN_STATS asks for it.
void tell_of_calls(job_segment& s) {
  if ((job.overrides & job_view::counts_calls) == 0) return;
  const std::vector<call_place_use> uses = call_place_uses();
  add_to_told(s, [&] {
    const std::uint32_t part = s.ranks[job.me].part;
    for (const call_place_use& use : uses) {
      call_place_told* const end = s.call_places + s.call_place_count;
      call_place_told* const told = std::find_if(s.call_places, end, [&](const auto& one) {
        return one.code == use.code && one.part == part && one.chooses == (use.chooses ? 1 : 0);
      });
      if (told == end) {
        if (s.call_place_count == call_places_told_max) continue;
        ++s.call_place_count;
        *told = {};
        told->code = use.code;
        told->part = part;
        told->chooses = use.chooses ? 1 : 0;
        told->said = static_cast<std::uint8_t>(use.said);
        told->bringing = static_cast<std::uint8_t>(use.bringing);
        // Its end tells more than its beginning.
        std::string_view name = method_name_in(use.method);
        name.remove_prefix(name.size() - std::min(name.size(), sizeof told->method - 1));
        std::snprintf(told->method, sizeof told->method, "%.*s", static_cast<int>(name.size()),
                      name.data());
      }
      std::uint64_t calls = 0;
      for (std::size_t i = 0; i < std::size(use.calls); ++i) {
        told->calls[i] += use.calls[i];
        calls += use.calls[i];
      }
      ++told->ranks_now[static_cast<std::size_t>(use.now)];
      const auto weight = static_cast<double>(calls);
      if (use.cost_of_migrating >= 0) {
        told->cost_of_migrating += use.cost_of_migrating * weight;
        told->calls_a_migration += use.calls_a_migration * weight;
        told->calls_of_migrating += calls;
      }
      if (use.cost_of_bringing >= 0) {
        told->cost_of_bringing += use.cost_of_bringing * weight;
        told->calls_a_bringing += use.calls_a_bringing * weight;
        told->calls_of_bringing += calls;
      }
      told->changes += use.changes;
    }
  });
}

}  // namespace

void tell_launcher(job_segment& segment) {
  tell_of_settings(segment);
  tell_of_forks(segment);
  tell_of_calls(segment);
}

}  // namespace sojourn::detail
