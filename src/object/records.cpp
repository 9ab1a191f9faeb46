// SPDX-License-Identifier: Apache-2.0
// What checked mode knows of the objects of this rank: their types while they live, and who has
// destroyed them, for some time afterwards. It is kept in private memory, away from what a program
// may overwrite.
#include "object/records.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/saved_file.hpp"
#include "frames/function_name.hpp"
#include "frames/symbols.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "object/sites.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

namespace {

struct object_record {
  object_kind element;
  std::size_t bytes;
  enum { alive, dying, destroyed } state = alive;
  std::size_t alignment = 0;
  code_site destroyer = {};
  std::uint64_t destroyed_at =
      0;  ///< A time of now_ns(), which is the same clock on all ranks of a host.
  bool is_destroyed() const { return state == destroyed; }
};
using record_map = std::map<std::uint64_t, object_record>;

constexpr std::size_t quarantine_bytes_max = 16u << 20;
constexpr unsigned char destroyed_byte = 0xdb;

struct {
  record_map records;  // by address
  std::deque<std::uint64_t> quarantine;
  std::size_t quarantine_bytes = 0;
} objects;

/// Objects that were accessed lately, by address. Pointers to their records stay valid, because a
/// map does not move its nodes.
struct recent_object {
  std::uint64_t address;
  const object_record* record;
};
recent_object recent[1024];
recent_object& recent_of(std::uint64_t address) { return recent[address / 16 % 1024]; }

record_map::iterator find_record(std::uint64_t address) {
  auto after = objects.records.upper_bound(address);
  if (after == objects.records.begin()) return objects.records.end();
  auto record = std::prev(after);
  return address - record->first < record->second.bytes ? record : objects.records.end();
}

void erase_record(record_map::iterator record) {
  if (recent_of(record->first).address == record->first) recent_of(record->first) = {};
  objects.records.erase(record);
}

std::string name_of(const object_kind& kind) {
  return kind.type != nullptr ? demangle_type(kind.type->name()) : std::string("object");
}

std::string who(const code_site& site) {
  if (runs_other_program(site.rank)) return "a function on " + rank_and_program(site.rank);
  if (site.code == 0) return format("a call by name on rank %d", site.rank);
  return format("`%s` on rank %d", function_name(site.code - 1).c_str(), site.rank);
}

std::string deed(const char* method) {
  if (method == nullptr) return "copied";
  return format("called %s on", std::string(method_name_in(method)).c_str());
}

bool same(const std::type_info* a, const std::type_info* b) {
  return a == nullptr || b == nullptr || *a == *b;
}

/// True when an object of type `made`, which lies at `object`, has a base of type `as` at `at`.
bool has_base(const std::type_info* made, const std::type_info* as, std::uint64_t object,
              std::uint64_t at) {
  const auto* base = dynamic_cast<const abi::__class_type_info*>(as);
  if (base == nullptr) return false;
  void* p = reinterpret_cast<void*>(object);
  return made->__do_upcast(base, &p) && reinterpret_cast<std::uint64_t>(p) == at;
}

/// True for types of bytes, which a program may divide into objects itself.
bool is_raw(const std::type_info* type) {
  return type != nullptr &&
         (*type == typeid(char) || *type == typeid(unsigned char) || *type == typeid(std::byte));
}

/// True when an object of type `as` may lie at `address`, in the object that begins at `start`: as
/// that object itself, as its base, or as a part of it.
bool fits(std::uint64_t start, const object_record& record, std::uint64_t address,
          const object_kind& as) {
  std::uint64_t offset = address - start;
  if (as.bytes > record.bytes - offset) return false;
  if (is_raw(record.element.type)) return true;
  std::uint64_t within = offset % record.element.bytes;
  if (as.bytes > record.element.bytes - within) return false;
  if (within != 0) return true;  // a member, or a base after another
  return same(record.element.type, as.type) ||
         has_base(record.element.type, as.type, address, address);
}

struct found_object {
  std::uint64_t start;
  const object_record* record;
};

/// The object that contains `address` and was alive at `when`; ends the job when there was none.
found_object live_object(std::uint64_t address, const char* method, code_site site,
                         std::uint64_t when) {
  auto record = find_record(address);
  auto shown = static_cast<unsigned long long>(address);
  if (record == objects.records.end()) {
    die("%s %s 0x%llx, where rank %d has no object: the global_ptr comes from another job, or was "
        "never set",
        who(site).c_str(), deed(method).c_str(), shown, job.me);
  }
  const object_record& r = record->second;
  if (r.is_destroyed() && r.destroyed_at <= when) {
    die("%s %s the %s at 0x%llx, which %s had destroyed", who(site).c_str(), deed(method).c_str(),
        name_of(r.element).c_str(), shown, who(r.destroyer).c_str());
  }
  return {record->first, &r};
}

[[noreturn]] void wrong_type(const object_record& r, std::uint64_t address, const object_kind& as,
                             const char* method, code_site site) {
  die("%s %s the %s at 0x%llx as if its type were %s: the global_ptr has the wrong type",
      who(site).c_str(), deed(method).c_str(), name_of(r.element).c_str(),
      static_cast<unsigned long long>(address), name_of(as).c_str());
}

enum class number { none, whole, floating };

number number_of(const std::type_info* type) {
  if (type == nullptr) return number::none;
  if (*type == typeid(float) || *type == typeid(double) || *type == typeid(long double)) {
    return number::floating;
  }
  for (const std::type_info* whole :
       {&typeid(bool), &typeid(signed char), &typeid(short), &typeid(unsigned short), &typeid(int),
        &typeid(unsigned), &typeid(long), &typeid(unsigned long), &typeid(long long),
        &typeid(unsigned long long)}) {
    if (*type == *whole) return number::whole;
  }
  return number::none;
}

/// True when both types are numbers and not alike. Other types may differ in a copy, because parts
/// of objects, and bytes, may be copied.
bool is_other_number(const object_kind& made, const object_kind& as) {
  number a = number_of(made.type);
  number b = number_of(as.type);
  return a != number::none && b != number::none && (a != b || made.bytes != as.bytes);
}

/// A copy, as the owner of the memory is told about it.
struct copy {
  std::uint64_t address;
  std::size_t count;
  object_kind element;
  code_site site;
  std::uint64_t when;
};

void look_at_copy(const copy& c) {
  auto [start, r] = live_object(c.address, nullptr, c.site, c.when);
  std::size_t left = (r->bytes - (c.address - start)) / c.element.bytes;
  if (c.count > left) {
    die("%s copied %zu elements at 0x%llx, where %zu %s left of the array of %zu %s",
        who(c.site).c_str(), c.count, static_cast<unsigned long long>(c.address), left,
        left == 1 ? "is" : "are", r->bytes / r->element.bytes, name_of(r->element).c_str());
  }
  if (is_other_number(r->element, c.element) && !is_excused(function_name(c.site.code - 1))) {
    wrong_type(*r, c.address, c.element, nullptr, c.site);
  }
}

void on_check_copy(arrival& a, const copy& c) {
  if (c.element.bytes == 0) refuse_arrival(a, "says that an element has 0 bytes");
  wire().consume(a);
  look_at_copy(c);
}

}  // namespace

void attach_records() { on_message<copy, on_check_copy>(runtime_message::check_copy); }

void save_records(file_writer& to) {
  to.put(objects.records.size());
  for (const auto& [address, record] : objects.records) {
    to.put(address);
    to.put(record);
  }
  to.put(objects.quarantine.size());
  for (std::uint64_t address : objects.quarantine) to.put(address);
  to.put(objects.quarantine_bytes);
}

void load_records(file_reader& from) {
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    auto address = from.get<std::uint64_t>();
    objects.records.emplace(address, from.get<object_record>());
  }
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    objects.quarantine.push_back(from.get<std::uint64_t>());
  }
  from.get(objects.quarantine_bytes);
}

void record_object(const void* object, std::size_t bytes, object_kind element) {
  objects.records.insert_or_assign(reinterpret_cast<std::uint64_t>(object),
                                   object_record{element, bytes});
}

void forget_object(const void* object) {
  auto record = objects.records.find(reinterpret_cast<std::uint64_t>(object));
  if (record != objects.records.end()) erase_record(record);
}

void check_access(std::uint64_t address, object_kind as, const char* method, code_site site) {
  recent_object& known = recent_of(address);
  if (known.address == address && !known.record->is_destroyed() &&
      known.record->element.type == as.type) [[likely]] {
    return;
  }
  auto [start, r] = live_object(address, method, site, ~std::uint64_t{0});
  if (!fits(start, *r, address, as)) {
    if (is_excused(function_name(site.code - 1))) return;
    wrong_type(*r, address, as, method, site);
  }
  if (start == address && r->element.type == as.type) known = {address, r};
}

void check_copy(std::uint64_t address, std::size_t count, object_kind element, code_site site) {
  if (count == 0) return;
  copy c{address, count, element, site, now_ns()};
  const int owner = owner_of(address);
  if (owner == job.me) return look_at_copy(c);
  // An address that is not in the heap is refused by the copy itself.
  if (owner == no_owner) return;
  // A type_info is valid in its own program only.
  if (runs_other_program(owner)) c.element.type = nullptr;
  send_reply(owner, runtime_message::check_copy, 0, 0, &c, sizeof c);
}

bool is_destroyed(std::uint64_t address) {
  auto record = objects.records.find(address);
  return record != objects.records.end() && record->second.is_destroyed();
}

void begin_destroy(std::uint64_t address, std::size_t bytes, object_kind element, code_site site) {
  check_thread();
  auto record = find_record(address);
  auto shown = static_cast<unsigned long long>(address);
  if (record == objects.records.end() || record->first != address) {
    die("%s destroyed 0x%llx, where no object of rank %d begins: the global_ptr comes from another "
        "job, or was never set",
        who(site).c_str(), shown, job.me);
  }
  object_record& r = record->second;
  if (r.state != object_record::alive) {
    die("%s destroyed the %s at 0x%llx a second time: %s %s", who(site).c_str(),
        name_of(r.element).c_str(), shown, who(r.destroyer).c_str(),
        r.is_destroyed() ? "had destroyed it" : "is destroying it");
  }
  if (!same(r.element.type, element.type)) {
    die("%s destroyed the %s at 0x%llx as if its type were %s: the global_ptr has the wrong type",
        who(site).c_str(), name_of(r.element).c_str(), shown, name_of(element).c_str());
  }
  // An empty array counts as one byte.
  if (std::max<std::size_t>(bytes, 1) != r.bytes) {
    die("%s destroyed %zu elements of the array of %zu %s at 0x%llx: destroy_array takes the count "
        "that make_array took",
        who(site).c_str(), bytes / element.bytes, r.bytes / element.bytes,
        name_of(r.element).c_str(), shown);
  }
  r.state = object_record::dying;
  r.destroyer = site;
}

void end_destroy(std::uint64_t address, std::size_t alignment) {
  object_record& r = objects.records.at(address);
  r.state = object_record::destroyed;
  r.destroyed_at = now_ns();
  r.alignment = alignment;
  std::memset(reinterpret_cast<void*>(address), destroyed_byte, r.bytes);
  objects.quarantine.push_back(address);
  objects.quarantine_bytes += r.bytes;
  std::size_t most = std::min<std::size_t>(quarantine_bytes_max, job.my_heap_bytes / 16);
  while (objects.quarantine_bytes > most) {
    auto oldest = objects.records.find(objects.quarantine.front());
    objects.quarantine.pop_front();
    std::size_t bytes = oldest->second.bytes;
    std::size_t aligned = oldest->second.alignment;
    auto* object = reinterpret_cast<void*>(oldest->first);
    erase_record(oldest);
    objects.quarantine_bytes -= bytes;
    heap_free(object, bytes, aligned);
  }
}

}  // namespace sojourn::detail
