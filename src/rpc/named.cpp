// SPDX-License-Identifier: Apache-2.0
#include "rpc/named.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/named.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

// One for each rank that a job may have.
constinit const std::uint32_t no_entries[1024] = {};

namespace {

constexpr std::size_t bucket_count = 256;

std::vector<export_entry>& exports_so_far() {
  static std::vector<export_entry> list;  // filled before run()
  return list;
}

struct {
  const export_entry* exports = nullptr;  // where the scan of frames does not look
  std::uint32_t export_count = 0;
  bool attached = false;
  name_stub* known[bucket_count] = {};
} names;

/// What a rank answers to a name: the entry in its table.
struct told_entry {
  std::uint64_t key;
  std::uint32_t entry;
};

constexpr std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

name_stub* find_known(std::uint64_t key) {
  name_stub* stub = names.known[key % bucket_count];
  while (stub != nullptr && stub->key != key) stub = stub->next;
  return stub;
}

void remember(name_stub& stub) {
  if (stub.is_known) return;
  if (const name_stub* other = find_known(stub.key)) {
    die("the names %s and %s have the same key: change one of them", other->name, stub.name);
  }
  stub.next = names.known[stub.key % bucket_count];
  names.known[stub.key % bucket_count] = &stub;
  stub.is_known = true;
}

/// Notes where calls of a name go on rank `from`.
void learn(const told_entry& told, int from) {
  name_stub* stub = find_known(told.key);
  if (stub == nullptr) return;
  if (stub->entries == no_entries) {
    stub->entries = runtime_array<std::uint32_t>(static_cast<std::size_t>(job.count));
  }
  const_cast<std::uint32_t*>(stub->entries)[from] = told.entry + 1;
}

void on_entry_told(arrival& a, const told_entry& told) {
  int from = a.source;
  wire().consume(a);
  learn(told, from);
}

/// The name and the signature that a call carries; empty when it carries none.
struct called_name {
  std::string name;
  std::string signature;
};

called_name read_text(const request& message, const named_header& header) {
  const char* text = reinterpret_cast<const char*>(message.payload) + sizeof header;
  std::size_t left = header.text_bytes();
  std::size_t name = strnlen(text, left);
  left -= std::min(left, name + 1);
  return {std::string(text, name), std::string(text + name + 1, strnlen(text + name + 1, left))};
}

const export_entry* find_export(std::uint64_t key) {
  const export_entry* end = names.exports + names.export_count;
  const export_entry* found =
      std::find_if(names.exports, end, [key](const export_entry& e) { return e.key == key; });
  return found == end ? nullptr : found;
}

/// Keys are hashes, so the texts are compared, too, if the call carries them.
bool fits(const called_name& called, const export_entry& entry) {
  return called.name.empty() ||
         (called.name == entry.stub->name && called.signature == entry.stub->signature);
}

/// Why this rank refuses a call by name.
std::string refusal(const called_name& called, int source) {
  std::string caller = rank_and_program(source);
  std::string here = rank_and_program(job.me);
  if (called.name.empty()) {
    return format("%s calls an entry that is not in the table of names of %s", caller.c_str(),
                  here.c_str());
  }
  for (std::uint32_t i = 0; i < names.export_count; ++i) {
    const name_stub& own = *names.exports[i].stub;
    if (called.name != own.name) continue;
    const char* detail =
        called.signature == own.signature ? "; a type of that name has a different size there" : "";
    return format("%s exports \"%s\" as %s, and %s calls it as %s%s", here.c_str(), own.name,
                  own.signature, caller.c_str(), called.signature.c_str(), detail);
  }
  std::string others;
  constexpr std::uint32_t shown = 8;
  for (std::uint32_t i = 0; i < std::min(names.export_count, shown); ++i) {
    others += format("%s \"%s\"", i == 0 ? "; it exports" : ",", names.exports[i].stub->name);
  }
  if (names.export_count > shown) others += format(" and %u more", names.export_count - shown);
  if (names.export_count == 0) others = "; it exports nothing";
  return format("%s exports no \"%s\", which %s calls as %s%s", here.c_str(), called.name.c_str(),
                caller.c_str(), called.signature.c_str(), others.c_str());
}

void fail_call(ticket_id answer, const std::exception_ptr& failure) {
  if (answer != 0) return send_exception(answer, failure);
  one_way_failed(failure);
}

/// Tells the caller of a refused call that it need not keep the call's long arguments any more.
void let_go_of_values(const request& message, const named_header& header) {
  if (header.values() == 0) return;
  const std::size_t at = sizeof header + header.text_bytes() + 16 * (header.values() - 1);
  if (at > message.bytes) return;
  // The destructor tells the rank that keeps the values to let go of them.
  const incoming unread(message.payload + at, message.bytes - at, -1, nullptr);
}

/// Finds the function of a call that carries no valid entry, by the name that it carries. Returns
/// null when there is no such function: the call has then failed.
[[gnu::noinline]] const export_entry* resolve(request& message, const named_header& header) {
  bool whole = sizeof header + header.text_bytes() <= message.bytes;
  called_name called = whole ? read_text(message, header) : called_name{};
  if (whole) {
    if (const export_entry* found = find_export(header.key);
        found != nullptr && fits(called, *found)) {
      told_entry told{header.key, static_cast<std::uint32_t>(found - names.exports)};
      // The caller is this rank itself, so no message is needed.
      if (message.source == job.me) {
        learn(told, job.me);
      } else {
        send_reply(message.source, runtime_message::entry_told, 0, 0, &told, sizeof told);
      }
      return found;
    }
  }
  std::string why =
      whole ? refusal(called, message.source) : "a call by name is shorter than its name";
  if (whole) let_go_of_values(message, header);
  ticket_id answer = message.ticket;
  message.consume();
  fail_call(answer, std::make_exception_ptr(not_exported(why)));
  return nullptr;
}

/// Runs a call that carries a name and not an entry of this table; refuses a malformed one.
[[gnu::noinline]] void call_by_text(request& message) {
  named_header header{0, named_header::no_entry, 0};
  std::memcpy(&header, message.payload, std::min<std::size_t>(sizeof header, message.bytes));
  const export_entry* entry = resolve(message, header);
  if (entry == nullptr) return;
  std::size_t before = sizeof header + header.text_bytes();
  if (message.bytes < before + entry->argument_bytes) return refuse_malformed(*entry, message);
  entry->run(*entry, message, message.payload + before);
}

void on_named(request& message) {
  if (message.bytes >= sizeof(named_header)) [[likely]] {
    named_header header;
    std::memcpy(&header, message.payload, sizeof header);
    // One comparison for both members: a call that carries texts has no entry.
    std::uint64_t entry = std::uint64_t{header.text} << 32 | header.entry;
    if (entry < names.export_count) [[likely]] {
      const export_entry& e = names.exports[entry];
      if (e.key == header.key && message.bytes >= sizeof header + e.argument_bytes) [[likely]] {
        return e.run(e, message, message.payload + sizeof header);
      }
    }
  }
  call_by_text(message);
}

}  // namespace

void add_export(const export_entry& entry) {
  if (names.attached)
    die("exports<…> of %s is called after run() has begun: call it before", entry.stub->name);
  exports_so_far().push_back(entry);
}

void attach_names() {
  names.attached = true;
  auto& list = exports_so_far();
  auto* table = runtime_array<export_entry>(list.size() + 1);
  for (const export_entry& entry : list) {
    for (std::uint32_t i = 0; i < names.export_count; ++i) {
      if (std::strcmp(table[i].stub->name, entry.stub->name) != 0) continue;
      throw error(format("\"%s\" is exported twice, as %s and as %s: give each its own name",
                         entry.stub->name, table[i].stub->signature, entry.stub->signature));
    }
    table[names.export_count] = entry;
    entry.stub->here = &table[names.export_count];
    ++names.export_count;
  }
  names.exports = table;
  on_message<told_entry, on_entry_told>(runtime_message::entry_told);
  on_request(fixed_handler::named_function, on_named, true);
  on_request(fixed_handler::named_method, on_named, false);
}

namespace {

[[gnu::noinline]] outgoing begin_with_name(name_stub& stub, int to, std::size_t argument_bytes,
                                           bool answered) {
  remember(stub);
  ++counts.name_cache_misses;
  std::size_t name_bytes = std::strlen(stub.name) + 1;
  std::size_t signature_bytes = std::strlen(stub.signature) + 1;
  std::size_t text_bytes = rounded_up(name_bytes + signature_bytes);
  outgoing out =
      begin_fixed_request(to, sizeof(named_header) + text_bytes + argument_bytes, answered);
  named_header header{stub.key, named_header::no_entry,
                      static_cast<std::uint32_t>(text_bytes) | stub.values};
  std::memcpy(out.payload, &header, sizeof header);
  out.payload += sizeof header;
  std::memset(out.payload, 0, text_bytes);
  std::memcpy(out.payload, stub.name, name_bytes);
  std::memcpy(out.payload + name_bytes, stub.signature, signature_bytes);
  out.payload += text_bytes;
  return out;
}

}  // namespace

outgoing begin_named(name_stub& stub, int to, std::size_t argument_bytes, bool answered) {
  bool is_rank = static_cast<unsigned>(to) < static_cast<unsigned>(job.count);
  std::uint32_t entry = is_rank ? stub.entries[to] : 0;
  if (entry == 0) [[unlikely]]
    return begin_with_name(stub, to, argument_bytes, answered);
  ++counts.name_cache_hits;
  outgoing out = begin_fixed_request(to, sizeof(named_header) + argument_bytes, answered);
  named_header header{stub.key, entry - 1, 0};
  std::memcpy(out.payload, &header, sizeof header);
  out.payload += sizeof header;
  return out;
}

void commit_named(int to, bool is_method, ticket_id ticket) {
  commit_request(
      to, handler_number(is_method ? fixed_handler::named_method : fixed_handler::named_function),
      ticket);
}

void not_exported_here(const name_stub& stub) {
  called_name called{stub.name, stub.signature};
  throw not_exported(refusal(called, job.me));
}

void refuse_malformed(const export_entry& entry, request& message) {
  std::string why = format("a call of %s by %s is shorter than its arguments", entry.stub->name,
                           rank_and_program(message.source).c_str());
  ticket_id answer = message.ticket;
  message.consume();
  fail_call(answer, std::make_exception_ptr(error(why)));
}

}  // namespace sojourn::detail
