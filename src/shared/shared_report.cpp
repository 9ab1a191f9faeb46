// SPDX-License-Identifier: Apache-2.0
#include "shared/shared_report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace sojourn::detail::pages {

namespace {

using sojourn::shared::counters;

unsigned long long number(std::uint64_t n) { return n; }

/// Names come from the program and may have several lines, but a part is read line by line.
std::string in_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

std::string json_text(const std::string& text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) >= ' ') json += c;
  }
  return json + "\"";
}

std::string ranks_of(std::uint64_t writers) {
  std::string text;
  for (int r = 0; r < 64; ++r) {
    if ((writers >> r & 1) == 0) continue;
    text += format(text.empty() ? "%d" : ", %d", r);
  }
  return text;
}

std::string times(std::uint64_t n, const char* one) {
  return format("%llu %s%s", number(n), one, n == 1 ? "" : "s");
}

counters sum_of(const std::vector<counters>& ranks) {
  auto all = counters().values();
  for (const counters& c : ranks) {
    const auto one = c.values();
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
  }
  return __builtin_bit_cast(counters, all);
}

std::string counters_text(const std::vector<counters>& ranks) {
  const counters c = sum_of(ranks);
  const std::uint64_t bytes = c.page_message_bytes + c.lock_message_bytes +
                              c.barrier_message_bytes + c.news_message_bytes +
                              c.event_message_bytes;
  const auto row = [](const char* name, std::uint64_t value) {
    return format("  %-34s %14llu\n", name, number(value));
  };
  const auto ms = [](const char* name, std::uint64_t ns) {
    return format("  %-34s %14.3f\n", name, static_cast<double>(ns) / 1e6);
  };
  return "All ranks together:\n" + row("KBytes sent", bytes / 1000) +
         row("remote faults", c.faults_remote) + row("remote locks", c.locks_remote) +
         row("lock messages", c.lock_messages) + row("overlapping faults", c.faults_overlapping) +
         row("overlapping locks", c.locks_overlapping) + row("contention: page", c.faults_joined) +
         row("contention: lock", c.locks_joined) + row("diffs created", c.diffs_made) +
         row("diffs used", c.diffs_applied) + "Waits of fibers, and who could run meanwhile:\n" +
         row("useful", c.switches_useful) +
         row("all wait for the same page", c.switches_same_page) +
         row("tail effect", c.switches_tail) + row("no work", c.switches_idle) + "Milliseconds:\n" +
         ms("no fiber could run: page", c.page_idle_ns) +
         ms("no fiber could run: lock", c.lock_idle_ns) +
         ms("no fiber could run: barrier", c.barrier_idle_ns) +
         ms("no fiber could run: event", c.event_idle_ns) + ms("serving messages", c.serving_ns) +
         ms("serving faults", c.faulting_ns);
}

}  // namespace

std::string written(const report_part& part) {
  std::string text;
  for (const counters& c : part.ranks) {
    text += "c";
    for (std::uint64_t value : c.values()) text += format(" %llu", number(value));
    text += "\n";
  }
  for (const named_block& b : part.blocks)
    text += format("a %llu %llu %s\t%s\n", number(b.at), number(b.bytes),
                   in_one_line(b.name).c_str(), in_one_line(b.where).c_str());
  for (const auto& [page, p] : part.pages)
    text += format("p %u %llu %llu %llu %llu %llu %llu %llu\n", page, number(p.loads),
                   number(p.stores), number(p.remote), number(p.shared_epochs), number(p.met_apart),
                   number(p.met_on_a_byte), number(p.writers));
  for (const fault_site& s : part.sites)
    text += format("s %u %llu %s\n", s.page, number(s.times), in_one_line(s.where).c_str());
  for (const race_note& r : part.races)
    text +=
        format("r %u %u %d %d %llu\n", r.page, r.offset, r.ranks[0], r.ranks[1], number(r.times));
  return text;
}

shared_report::shared_report(const std::vector<std::string>& parts, std::uint64_t first_page)
    : first_page_(first_page) {
  for (const std::string& part : parts) read(part);
  join_parts();
  std::sort(all_.blocks.begin(), all_.blocks.end(),
            [](const named_block& a, const named_block& b) { return a.at < b.at; });
  // An entry without bytes is a name that another rank than the allocating one has given: it goes
  // to the block that contains the address.
  for (const named_block& n : all_.blocks) {
    if (n.bytes != 0) continue;
    for (named_block& b : all_.blocks)
      if (n.at - b.at < b.bytes && b.name.empty()) b.name = n.name;
  }
  std::erase_if(all_.blocks, [](const named_block& b) { return b.bytes == 0; });
}

void shared_report::read(const std::string& part) {
  std::istringstream lines(part);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    char kind = 0;
    in >> kind;
    if (kind == 'c') {
      auto values = counters().values();
      for (std::uint64_t& value : values) in >> value;
      if (in) all_.ranks.push_back(__builtin_bit_cast(counters, values));
    } else if (kind == 'a') {
      named_block b{};
      in >> b.at >> b.bytes;
      in.ignore(1);
      std::getline(in, b.name, '\t');
      std::getline(in, b.where);
      all_.blocks.push_back(std::move(b));
    } else if (kind == 'p') {
      page_number page = 0;
      page_notes p;
      in >> page >> p.loads >> p.stores >> p.remote >> p.shared_epochs >> p.met_apart >>
          p.met_on_a_byte >> p.writers;
      if (in) all_.pages[page] += p;
    } else if (kind == 's') {
      fault_site s{};
      in >> s.page >> s.times;
      in.ignore(1);
      std::getline(in, s.where);
      all_.sites.push_back(std::move(s));
    } else if (kind == 'r') {
      race_note r{};
      in >> r.page >> r.offset >> r.ranks[0] >> r.ranks[1] >> r.times;
      if (in) all_.races.push_back(r);
    }
  }
}

namespace {

/// Sorts `all` by key, and joins elements of equal keys by join(one, another).
template <class T, class Key, class Join>
void join_alike(std::vector<T>& all, Key key, Join join) {
  std::sort(all.begin(), all.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept != 0 && key(all[kept - 1]) == key(all[i])) {
      join(all[kept - 1], all[i]);
    } else {
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
}

}  // namespace

void shared_report::join_parts() {
  join_alike(
      all_.sites, [](const fault_site& s) { return std::tie(s.page, s.where); },
      [](fault_site& one, const fault_site& other) { one.times += other.times; });
  // Several ranks may have compared the same diffs, so of their counts the greatest is taken, not
  // the sum.
  join_alike(
      all_.races, [](const race_note& r) { return std::tie(r.page, r.ranks[0], r.ranks[1]); },
      [](race_note& one, const race_note& other) {
        one.offset = std::min(one.offset, other.offset);
        one.times = std::max(one.times, other.times);
      });
}

const named_block* shared_report::block_at(std::uint64_t address) const {
  // Blocks that were freed are listed, too, so several may contain the address: takes the one that
  // begins last.
  const named_block* found = nullptr;
  for (const named_block& b : all_.blocks) {
    if (b.at > address) break;
    if (address < b.at + b.bytes) found = &b;
  }
  return found;
}

/// "byte 12 of `grid` (main.cpp:41)".
std::string shared_report::place_of(page_number page, std::uint32_t offset) const {
  const std::uint64_t address = address_of(page) + offset;
  const named_block* b = block_at(address);
  if (b == nullptr) return format("address 0x%llx", number(address));
  const std::string name = b->name.empty() ? "memory" : "`" + b->name + "`";
  const std::string where = b->where.empty() ? "" : " (" + b->where + ")";
  return format("byte %llu of %s%s", number(address - b->at), name.c_str(), where.c_str());
}

std::vector<page_number> shared_report::worst_first() const {
  std::vector<page_number> pages;
  for (const auto& [page, notes] : all_.pages) pages.push_back(page);
  // Of pages that are equally bad, the one with the lowest number comes first.
  const auto weight = [&](page_number g) {
    const page_notes& p = all_.pages.at(g);
    return std::tuple(p.met_on_a_byte != 0, p.remote, p.shared_epochs, p.loads + p.stores,
                      ~std::uint64_t{g});
  };
  std::sort(pages.begin(), pages.end(),
            [&](page_number a, page_number b) { return weight(a) > weight(b); });
  return pages;
}

std::vector<fault_site> shared_report::sites_of(page_number page) const {
  std::vector<fault_site> sites;
  const auto first =
      std::lower_bound(all_.sites.begin(), all_.sites.end(), page,
                       [](const fault_site& s, page_number g) { return s.page < g; });
  for (auto s = first; s != all_.sites.end() && s->page == page; ++s) sites.push_back(*s);
  std::sort(sites.begin(), sites.end(), [](const fault_site& a, const fault_site& b) {
    return std::tie(b.times, a.where) < std::tie(a.times, b.where);
  });
  return sites;
}

std::string shared_report::advice(const page_notes& p) const {
  const std::string who = ranks_of(p.writers);
  if (p.met_on_a_byte != 0)
    return "ranks " + who + " stored to the same bytes at the same time: a data race (see above)";
  if (p.met_apart != 0)
    return "ranks " + who +
           " stored to it at the same time, to different bytes (false sharing): give each rank's "
           "part a page of its own; blocks of 4 KiB and more begin on one";
  if (p.shared_epochs != 0)
    return "ranks " + who +
           " stored to it in turn: it goes from rank to rank with the mutex; change it less often, "
           "or add up on each rank first";
  return "";
}

std::string shared_report::text(std::size_t pages_shown) const {
  std::string text = format("Shared memory of %s\n", times(all_.ranks.size(), "rank").c_str());
  for (const race_note& r : all_.races)
    text += format(
        "Data race: ranks %d and %d stored to %s, and nothing ordered them (%s); take a "
        "mutex, or meet at a barrier in between\n",
        r.ranks[0], r.ranks[1], place_of(r.page, r.offset).c_str(), times(r.times, "time").c_str());
  if (all_.races.empty()) text += "No data race among the changes that met.\n";
  const std::vector<page_number> pages = worst_first();
  text += format("%s with faults, the worst first:\n", times(pages.size(), "page").c_str());
  for (std::size_t i = 0; i < std::min(pages.size(), pages_shown); ++i) {
    const page_notes& p = all_.pages.at(pages[i]);
    text += format("  page at 0x%llx, from %s\n    %s and %s, of which %llu asked other ranks\n",
                   number(address_of(pages[i])), place_of(pages[i], 0).c_str(),
                   times(p.loads, "load fault").c_str(), times(p.stores, "store fault").c_str(),
                   number(p.remote));
    const auto sites = sites_of(pages[i]);
    for (std::size_t s = 0; s < std::min<std::size_t>(sites.size(), 3); ++s)
      text += format("    %llu at %s\n", number(sites[s].times), sites[s].where.c_str());
    const std::string what_to_do = advice(p);
    if (!what_to_do.empty()) text += "    " + what_to_do + "\n";
  }
  if (pages.size() > pages_shown)
    text += format("  and %zu more: --shared-report-json has all\n", pages.size() - pages_shown);
  return text + counters_text(all_.ranks);
}

std::string shared_report::json() const {
  std::string json = "{\n  \"ranks\": " + std::to_string(all_.ranks.size()) + ",\n  \"races\": [";
  const char* before = "\n";
  for (const race_note& r : all_.races) {
    const std::uint64_t address = address_of(r.page) + r.offset;
    const named_block* b = block_at(address);
    json += format("%s    {\"address\": %llu, \"page\": %u, \"offset\": %u, \"ranks\": [%d, %d], ",
                   before, number(address), r.page, r.offset, r.ranks[0], r.ranks[1]);
    json += format("\"times\": %llu, \"name\": ", number(r.times)) +
            json_text(b != nullptr ? b->name : "") +
            ", \"allocated_at\": " + json_text(b != nullptr ? b->where : "") + "}";
    before = ",\n";
  }
  json += "\n  ],\n  \"pages\": [";
  before = "\n";
  for (const page_number g : worst_first()) {
    const page_notes& p = all_.pages.at(g);
    const named_block* b = block_at(address_of(g));
    json += format("%s    {\"address\": %llu, \"page\": %u, \"name\": ", before,
                   number(address_of(g)), g);
    json += json_text(b != nullptr ? b->name : "") +
            ", \"allocated_at\": " + json_text(b != nullptr ? b->where : "");
    json += format(", \"load_faults\": %llu, \"store_faults\": %llu, \"remote_faults\": %llu",
                   number(p.loads), number(p.stores), number(p.remote));
    json += format(", \"epochs_with_several_writers\": %llu, \"false_sharing\": %llu",
                   number(p.shared_epochs), number(p.met_apart));
    json += format(", \"races\": %llu, \"writers\": [%s], \"sites\": [", number(p.met_on_a_byte),
                   ranks_of(p.writers).c_str());
    const char* between = "";
    for (const fault_site& s : sites_of(g)) {
      json += format("%s{\"at\": %s, \"faults\": %llu}", between, json_text(s.where).c_str(),
                     number(s.times));
      between = ", ";
    }
    json += "]}";
    before = ",\n";
  }
  json += "\n  ],\n  \"counters\": {";
  before = "\n";
  const auto names = sojourn::shared::counter_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    json += format("%s    \"%s\": {\"per_rank\": [", before, names[i]);
    std::uint64_t sum = 0;
    const char* between = "";
    for (const counters& c : all_.ranks) {
      json += format("%s%llu", between, number(c.values()[i]));
      sum += c.values()[i];
      between = ", ";
    }
    json += format("], \"sum\": %llu}", number(sum));
    before = ",\n";
  }
  return json + "\n  }\n}\n";
}

}  // namespace sojourn::detail::pages
