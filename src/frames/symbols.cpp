// SPDX-License-Identifier: Apache-2.0
#include "frames/symbols.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <tuple>

namespace sojourn::detail {
namespace {

// Larger tables are refused: they are not worth the memory, and mostly come from damaged files.
constexpr std::uint64_t table_bytes_max = std::uint64_t{1} << 30;

/// Reads any part of a file; false when the part does not lie within the file.
class elf_file {
 public:
  explicit elf_file(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status{};
    if (fd_ >= 0 && fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
    }
  }
  ~elf_file() {
    if (fd_ >= 0) close(fd_);
  }
  elf_file(const elf_file&) = delete;
  elf_file& operator=(const elf_file&) = delete;

  bool contains(std::uint64_t offset, std::uint64_t size) const {
    return offset <= size_ && size <= size_ - offset;
  }

  bool read(std::uint64_t offset, void* to, std::uint64_t size) const {
    if (!contains(offset, size)) return false;
    auto* bytes = static_cast<char*>(to);
    while (size > 0) {
      // pread, not mmap: if another process truncated a mapped file, reading it would raise SIGBUS.
      ssize_t got = pread(fd_, bytes, size, static_cast<off_t>(offset));
      if (got <= 0) return false;
      bytes += got;
      offset += static_cast<std::uint64_t>(got);
      size -= static_cast<std::uint64_t>(got);
    }
    return true;
  }

 private:
  int fd_;
  std::uint64_t size_ = 0;
};

bool is_readable_header(const Elf64_Ehdr& header) {
  constexpr unsigned char byte_order =
      std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == byte_order &&
         header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shoff != 0;
}

std::vector<Elf64_Shdr> read_sections(const elf_file& file, const Elf64_Ehdr& header) {
  std::uint64_t count = header.e_shnum;
  if (count == 0) {  // More than 65279 sections: the first header holds the count.
    Elf64_Shdr first{};
    if (!file.read(header.e_shoff, &first, sizeof first)) return {};
    count = first.sh_size;
  }
  if (count > table_bytes_max / sizeof(Elf64_Shdr) ||
      !file.contains(header.e_shoff, count * sizeof(Elf64_Shdr))) {
    return {};
  }
  std::vector<Elf64_Shdr> sections(count);
  if (!file.read(header.e_shoff, sections.data(), count * sizeof(Elf64_Shdr))) return {};
  return sections;
}

bool is_named_function(const Elf64_Sym& symbol, std::uint64_t names_size) {
  unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_value != 0 && symbol.st_name != 0 && symbol.st_name < names_size;
}

/// The distance from the addresses in the program's file to those where it was loaded: 0 unless it
/// is position independent.
std::uintptr_t load_offset() {
  std::uintptr_t offset = 0;
  // The first object that is visited is the program itself.
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uintptr_t*>(result) = info->dlpi_addr;
        return 1;
      },
      &offset);
  return offset;
}

}  // namespace

symbol_table::symbol_table(const std::string& path) {
  elf_file file(path);
  Elf64_Ehdr header{};
  if (!file.read(0, &header, sizeof header) || !is_readable_header(header)) return;
  fixed_addresses_ = header.e_type == ET_EXEC;

  std::vector<Elf64_Shdr> sections = read_sections(file, header);
  auto table = std::find_if(sections.begin(), sections.end(),
                            [](const Elf64_Shdr& s) { return s.sh_type == SHT_SYMTAB; });
  if (table == sections.end() || table->sh_entsize != sizeof(Elf64_Sym) ||
      table->sh_link >= sections.size()) {
    return;
  }
  const Elf64_Shdr& strings = sections[table->sh_link];
  if (strings.sh_type != SHT_STRTAB || table->sh_size > table_bytes_max ||
      strings.sh_size > table_bytes_max || !file.contains(table->sh_offset, table->sh_size) ||
      !file.contains(strings.sh_offset, strings.sh_size)) {
    return;
  }

  std::vector<Elf64_Sym> symbols(table->sh_size / sizeof(Elf64_Sym));
  names_.resize(strings.sh_size);
  if (!file.read(table->sh_offset, symbols.data(), symbols.size() * sizeof(Elf64_Sym)) ||
      !file.read(strings.sh_offset, names_.data(), names_.size())) {
    names_.clear();
    return;
  }
  names_.push_back('\0');  // A damaged table may not end its last name.

  for (const Elf64_Sym& symbol : symbols) {
    if (!is_named_function(symbol, strings.sh_size)) continue;
    bool sized = symbol.st_size != 0;
    std::uint64_t end = symbol.st_value + symbol.st_size;
    if (!sized && symbol.st_shndx < sections.size()) {
      const Elf64_Shdr& section = sections[symbol.st_shndx];
      end = section.sh_addr + section.sh_size;
    }
    if (end > symbol.st_value) functions_.push_back({symbol.st_value, end, symbol.st_name, sized});
  }
  std::sort(functions_.begin(), functions_.end(), [](const function& a, const function& b) {
    return std::tie(a.address, a.name) < std::tie(b.address, b.name);
  });
}

std::string symbol_table::name_at(std::uintptr_t address) const {
  // The nearest start decides: an unsized function reaches to the next one, or to the end of its
  // section. Several names may share a start (a constructor's C1 and C2); a sized one is preferred.
  auto after = std::upper_bound(functions_.begin(), functions_.end(), address,
                                [](std::uint64_t a, const function& f) { return a < f.address; });
  const function* best = nullptr;
  for (auto f = after; f != functions_.begin();) {
    --f;
    if (f->address != std::prev(after)->address) break;
    if (address < f->end && (best == nullptr || f->sized)) best = &*f;
  }
  return best == nullptr ? "" : demangle(names_.c_str() + best->name);
}

namespace {

/// The qualified name at the beginning of a mangled name; "" when there is none.
std::string beginning_of(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return "";
  std::string_view rest = mangled.substr(2);
  bool nested = rest.starts_with('N');
  if (nested) rest.remove_prefix(std::min(rest.find_first_not_of("NrVKRO"), rest.size()));
  std::string name;
  if (rest.starts_with("St")) {
    name = "std";
    rest.remove_prefix(2);
  }
  for (bool more = true; more; more = nested) {
    std::size_t length = 0;
    auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    auto digits = static_cast<std::size_t>(end - rest.data());
    if (failure != std::errc() || length == 0 || length > rest.size() - digits) break;
    std::string_view part = rest.substr(digits, length);
    if (!name.empty()) name += "::";
    name += part == "_GLOBAL__N_1" ? "(anonymous namespace)" : part;
    rest.remove_prefix(digits + length);
  }
  if (!name.empty() && rest.starts_with('I')) name += "<...>";
  return name;
}

}  // namespace

std::string demangle(const char* name) {
  return std::string_view(name).starts_with("_Z") ? demangle_type(name) : name;
}

std::string demangle_type(const char* name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  if (status == 0 && readable) return readable.get();
  // clang 19 mangles constraints of templates, which the libraries of older compilers cannot read.
  std::string beginning = beginning_of(name);
  return beginning.empty() ? name : beginning;
}

std::string hexadecimal(std::uintptr_t value) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value != 0);
  return "0x" + text;
}

std::string symbolise(std::uintptr_t address) {
  static const symbol_table program("/proc/self/exe");
  static const std::uintptr_t offset = load_offset();
  std::string name = program.name_at(address - offset);
  if (!name.empty()) return name;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_sname != nullptr) {
    return demangle(info.dli_sname);
  }
  return hexadecimal(address);
}

}  // namespace sojourn::detail
