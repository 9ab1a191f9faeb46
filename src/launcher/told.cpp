// SPDX-License-Identifier: Apache-2.0
#include "launcher/told.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>

#include "frames/code_place.hpp"
#include "object/sites.hpp"

namespace sojourn::detail {

namespace {

std::vector<setting_use> settings_of(const job_segment& job) {
  return {job.uses, job.uses + std::min<std::size_t>(job.use_count, setting_uses_max)};
}

template <std::size_t size>
std::string text_in(const char (&room)[size]) {
  return {room, strnlen(room, size)};
}

}  // namespace

told_of_job told_by(const job_segment& job, const launch_plan& plan) {
  told_of_job told{.settings = settings_of(job), .forks = {}, .calls = {}};
  std::map<std::uint32_t, code_places> places;
  const auto place_of = [&](std::uint32_t part, std::uint64_t code) {
    code_places& known = places.try_emplace(part, plan.parts[part].program).first->second;
    const std::vector<code_place> at = known.of(&code, 1);
    return at.empty() ? std::string() : text_of(at.front());
  };
  for (std::uint32_t i = 0; i < std::min<std::size_t>(job.fork_site_count, fork_sites_told_max);
       ++i) {
    const fork_site_told& site = job.fork_sites[i];
    if (site.part >= plan.parts.size()) continue;
    told.forks.push_back({site, place_of(site.part, site.code)});
  }
  for (std::uint32_t i = 0; i < std::min<std::size_t>(job.call_place_count, call_places_told_max);
       ++i) {
    const call_place_told& place = job.call_places[i];
    if (place.part < plan.parts.size())
      told.calls.push_back({place, place_of(place.part, place.code)});
  }
  return told;
}

void add(told_of_job& sum, const told_of_job& more) {
  for (std::size_t i = 0; i < more.settings.size(); ++i) {
    const setting_use& use = more.settings[i];
    if (i == sum.settings.size()) {
      sum.settings.push_back(use);
      continue;
    }
    setting_use& all = sum.settings[i];
    all.matched |= use.matched;
    if (use.edits >= all.edits) continue;
    all.edits = use.edits;
    std::memcpy(all.nearest, use.nearest, sizeof all.nearest);
  }
  for (const told_of_job::fork_place& fork : more.forks) {
    const fork_site_told& told = fork.told;
    const auto same = std::find_if(sum.forks.begin(), sum.forks.end(), [&](const auto& one) {
      return one.told.site == told.site && one.told.part == told.part;
    });
    if (same == sum.forks.end()) {
      sum.forks.push_back(fork);
      continue;
    }
    same->told.forks += told.forks;
    same->told.blocked += told.blocked;
    same->told.bytes_cut += told.bytes_cut;
    same->told.linked_ranks += told.linked_ranks;
    same->told.ranks += told.ranks;
  }
  for (const told_of_job::call_place& call : more.calls) {
    const call_place_told& told = call.told;
    const auto same = std::find_if(sum.calls.begin(), sum.calls.end(), [&](const auto& one) {
      return one.told.code == told.code && one.told.part == told.part &&
             one.told.chooses == told.chooses;
    });
    if (same == sum.calls.end()) {
      sum.calls.push_back(call);
      continue;
    }
    call_place_told& all = same->told;
    for (std::size_t i = 0; i < std::size(all.calls); ++i) all.calls[i] += told.calls[i];
    for (std::size_t i = 0; i < std::size(all.ranks_now); ++i)
      all.ranks_now[i] += told.ranks_now[i];
    all.cost_of_migrating += told.cost_of_migrating;
    all.cost_of_bringing += told.cost_of_bringing;
    all.calls_a_migration += told.calls_a_migration;
    all.calls_a_bringing += told.calls_a_bringing;
    all.calls_of_migrating += told.calls_of_migrating;
    all.calls_of_bringing += told.calls_of_bringing;
    all.changes += told.changes;
  }
}

std::string text_of_unmatched(const std::vector<setting_use>& settings) {
  std::string text;
  for (const setting_use& use : settings) {
    if (use.matched == 0) {
      text += "sojourn run: " + unmatched_rule_text(text_in(use.name), text_in(use.nearest)) + "\n";
    }
  }
  return text;
}

std::vector<fork_figures> figures_of(const std::vector<told_of_job::fork_place>& forks) {
  // Measured on x86-64 (sojourn bench hybrid): a link, and a walk over a frame of usual length.
  constexpr std::uint64_t link_instructions = 40;
  constexpr std::uint64_t frame_instructions = 50;
  constexpr std::uint64_t frame_bytes = 64;
  std::vector<fork_figures> all;
  for (const auto& [told, place] : forks) {
    all.push_back({.place = place,
                   .forks = told.forks,
                   .blocked = told.blocked,
                   .ranks = static_cast<int>(told.ranks),
                   .linked_ranks = static_cast<int>(told.linked_ranks),
                   .cost_of_links = told.forks * link_instructions,
                   .cost_of_walks = told.bytes_cut / frame_bytes * frame_instructions});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.forks > b.forks; });
  return all;
}

namespace {

constexpr std::array words{"rpc", "migrate", "cache", "fetch", "automatic"};
const char* word_of(std::size_t mechanism) {
  return mechanism < words.size() ? words[mechanism] : "";
}

}  // namespace

std::vector<call_figures> figures_of(const std::vector<told_of_job::call_place>& calls) {
  std::vector<call_figures> all;
  for (const auto& [told, place] : calls) {
    const auto mean = [](double sum, std::uint64_t of) {
      return of == 0 ? -1 : sum / static_cast<double>(of);
    };
    const auto most = std::max_element(std::begin(told.ranks_now), std::end(told.ranks_now));
    call_figures& figures = all.emplace_back();
    figures.place = place;
    figures.method = text_in(told.method);
    figures.said = word_of(told.said);
    figures.now = word_of(static_cast<std::size_t>(most - std::begin(told.ranks_now)));
    std::copy(std::begin(told.calls), std::end(told.calls), figures.calls.begin());
    figures.bringing = told.bringing == 0 ? "" : word_of(told.bringing);
    figures.cost_of_migrating = mean(told.cost_of_migrating, told.calls_of_migrating);
    figures.cost_of_bringing = mean(told.cost_of_bringing, told.calls_of_bringing);
    figures.calls_a_migration = mean(told.calls_a_migration, told.calls_of_migrating);
    figures.calls_a_bringing = mean(told.calls_a_bringing, told.calls_of_bringing);
    figures.changes = told.changes;
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.all_calls() > b.all_calls(); });
  return all;
}

}  // namespace sojourn::detail
