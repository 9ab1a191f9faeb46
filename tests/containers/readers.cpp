// SPDX-License-Identifier: Apache-2.0
// lines, csv and sequences: each rank gets the records that begin in its part of a file, of plain
// and of compressed files with random contents, beside a serial model; and mistakes are named.
#include <sojourn/readers.hpp>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/check.hpp"

using namespace sojourn;

namespace {

using u64 = std::uint64_t;

u64 seed = 1;
std::string directory;  ///< Of this test, the same on all ranks.
constexpr const char* programs[] = {"gzip", "bzip2", "xz", "zstd"};
constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// A file's text, and its records with the bytes at which they begin.
struct model {
  std::string text;
  std::vector<std::pair<std::size_t, std::string>> records;

  void add(const std::string& bytes, const std::string& record) {
    records.emplace_back(text.size(), record);
    text += bytes;
  }
  void drop_last_line_end() {
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
  }
  /// What a member of a team is to get.
  std::vector<std::string> of_member(const team& members, bool compressed) const {
    const auto me = static_cast<std::size_t>(members.rank_me());
    const auto count = static_cast<std::size_t>(members.rank_count());
    std::vector<std::string> mine;
    for (const auto& [offset, record] : records) {
      const bool is_mine = compressed ? offset / mebibyte % count == me
                                      : offset >= text.size() * me / count &&
                                            offset < text.size() * (me + 1) / count;
      if (is_mine) mine.push_back(record);
    }
    return mine;
  }
};

std::string as_text(std::string_view line) { return std::string(line); }
std::string as_text(const csv_row& row) {
  std::string all;
  for (std::size_t i = 0; i < row.size(); ++i) all += std::string(row[i]) + '|';
  return all;
}
std::string as_text(const sequence& s) {
  std::string all;
  for (const std::string_view part : {s.name, s.comment, s.bases, s.quality})
    all += std::string(part) + '|';
  return all;
}
template <class Reader>
std::vector<std::string> all_of(Reader&& reader) {
  std::vector<std::string> all;
  for (const auto& record : reader) all.push_back(as_text(record));
  return all;
}

/// Makes a file with this text on rank 0, and returns its path everywhere.
std::string written(const std::string& text) {
  static int files = 0;
  const std::string path = directory + "/file " + std::to_string(++files);
  if (rank_me() == 0)
    CHECK(
        std::ofstream(path, std::ios::binary).write(text.data(), std::ssize(text)).flush().good());
  barrier();
  return path;
}
/// Compresses the file; nothing when the program is not there.
std::optional<std::string> compressed(const std::string& path, const std::string& program) {
  const std::string to = path + ' ' + program;
  bool is_there = false;
  if (rank_me() == 0) {
    is_there = std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
    const std::string command = program + " -1 -c <'" + path + "' >'" + to + '\'';
    if (is_there) CHECK_EQUAL(std::system(command.c_str()), 0);
  }
  return broadcast(is_there) ? std::optional(to) : std::nullopt;
}

/// Reads the model's text with read(path, members), plain and compressed.
template <class Read>
void check_reading(const model& m, Read read, const char* program = "gzip") {
  const std::string path = written(m.text);
  CHECK(read(path, team::world()) == m.of_member(team::world(), false));
  if (const auto other = compressed(path, program))
    CHECK(read(*other, team::world()) == m.of_member(team::world(), true));
  barrier();
}

const auto read_lines = [](const std::string& path, const team& members) {
  return all_of(lines(path, members));
};
const auto read_sequences = [](const std::string& path, const team& members) {
  return all_of(sequences(path, members));
};
auto read_rows(csv_options options) {
  return [=](const std::string& path, const team& members) {
    return all_of(csv(path, options, members));
  };
}

class random_text {
 public:
  explicit random_text(u64 more) : random_(seed * 1000003 + more) {}
  std::size_t below(std::size_t end) { return random_() % end; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  std::string of(std::string_view characters, std::size_t length) {
    std::string text(length, ' ');
    u64 bits = 0;
    for (std::size_t i = 0; i < length; ++i, bits >>= 8) {
      if (i % 8 == 0) bits = random_();
      text[i] = characters[(bits & 255) % characters.size()];
    }
    return text;
  }
  std::string line_end() { return one_in(3) ? "\r\n" : "\n"; }

 private:
  std::mt19937_64 random_;
};

/// Appends records that are there already, so that the text has many bytes and is soon compressed.
model repeated(random_text& random, model m, std::size_t bytes) {
  if (!m.text.ends_with('\n')) m.text += '\n';
  const std::size_t count = m.records.size() - 1;
  while (m.text.size() < bytes) {
    const std::size_t i = random.below(count);
    const std::size_t begin = m.records[i].first;
    m.add(m.text.substr(begin, m.records[i + 1].first - begin), m.records[i].second);
  }
  return m;
}

model random_lines(random_text& random, std::size_t count, std::size_t length) {
  model m;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string line =
        random.of("abc,\" xyz", random.one_in(4) ? 0 : random.below(length + 1));
    m.add(line + random.line_end(), line);
  }
  if (count > 0 && !m.records.back().second.empty() && random.one_in(2)) m.drop_last_line_end();
  return m;
}

void each_line_is_on_one_rank() {
  random_text random(1);
  for (const std::size_t count : {0ul, 1ul, 2ul, 3ul, 5ul, 8ul, 30ul, 1000ul})
    for (const std::size_t length : {0ul, 1ul, 10ul, 300ul})
      check_reading(random_lines(random, count, length), read_lines);
  // A carriage return alone ends no line, at the end of the file either.
  model m;
  m.add("a\rb\n", "a\rb");
  m.add("\r\r\n", "\r");
  m.add("c\r", "c\r");
  check_reading(m, read_lines);
}

void lines_may_be_longer_than_a_part_and_a_stretch() {
  random_text random(2);
  for (int way = 0; way < 2; ++way) {
    model m;
    for (const std::size_t length : {std::size_t{5}, 3 * mebibyte, std::size_t{0}, mebibyte,
                                     mebibyte - 1, std::size_t{70}, 2 * mebibyte / 3}) {
      const std::string line(length, static_cast<char>('a' + random.below(26)));
      m.add(line + random.line_end(), line);
    }
    if (way == 1) m.drop_last_line_end();
    check_reading(m, read_lines);
  }
}

void a_line_may_begin_where_a_stretch_does() {
  for (const std::size_t first : {mebibyte - 2, mebibyte - 1, mebibyte, mebibyte + 1}) {
    model m;
    m.add(std::string(first - 1, 'a') + '\n', std::string(first - 1, 'a'));
    m.add("b\n", "b");
    m.add("\n", "");
    m.add("c\n", "c");
    check_reading(m, read_lines);
  }
}

void compressed_files_are_read_in_turn() {
  random_text random(3);
  for (const std::string program : programs) {
    const std::size_t bytes = program == "gzip" ? 4 * mebibyte : 5 * mebibyte / 4;
    check_reading(repeated(random, random_lines(random, 1000, 200), bytes), read_lines,
                  program.c_str());
  }
}

void a_team_reads_a_file_among_its_members() {
  random_text random(4);
  const team half = team::world().split(rank_me() % 2, -rank_me());
  const model m = repeated(random, random_lines(random, 1000, 100), 3 * mebibyte);
  const std::string path = written(m.text);
  CHECK(read_lines(path, half) == m.of_member(half, false));
  if (const auto other = compressed(path, "gzip"))
    CHECK(read_lines(*other, half) == m.of_member(half, true));
  // Not collective: one alone may read.
  if (rank_me() == 0) CHECK(read_lines(path, half) == m.of_member(half, false));
  CHECK_THROWS(error, read_lines(path, team()));
  barrier();
}

void a_loop_may_be_left_and_gone_on_with() {
  const std::string path = written("1\n2\n3\n");
  const team alone = team::world().split(rank_me());
  lines reader(path, alone);
  std::string all;
  for (int loop = 0; loop < 3; ++loop)
    for (const std::string_view line : reader) {
      all += line;
      if (line == "1") break;
    }
  CHECK_EQUAL(all, "123");
  barrier();
}

bool has_child() {
  int status;
  return waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD;
}

void a_reader_leaves_no_child() {
  random_text random(5);
  const model m = repeated(random, random_lines(random, 1000, 100), mebibyte);
  const std::string path = written(m.text);
  for (const char* program : programs) {
    const auto other = compressed(path, program);
    if (!other.has_value()) continue;
    {
      const lines unused(*other);
    }
    CHECK(!has_child());
    for (const std::string_view line : lines(*other)) {
      CHECK(has_child());
      if (!line.empty()) break;
    }
    CHECK(!has_child());
    if (program == programs[0]) (void)read_lines(*other, team::world());
    CHECK(!has_child());
  }
  barrier();
}

long moves_while_it_reads(int where, bool compressed) {
  const std::string path = directory + (compressed ? "/moves gzip" : "/moves");
  long sum = 0;
  for (const std::string_view line : lines(path)) {
    CHECK(where == rank_me() || !migrate_to(where));
    sum += static_cast<long>(line.size());
    yield();
  }
  return sum;
}
void a_reader_keeps_its_frame_on_its_rank() {
  if (rank_me() == 0) std::ofstream(directory + "/moves") << "one\ntwo\nthree\nfour\n";
  const bool has_gzip = compressed(directory + "/moves", "gzip").has_value();
  const int next = (rank_me() + 1) % rank_count();
  CHECK_EQUAL(reduce(activate(moves_while_it_reads, next, false), std::plus<>()), 15);
  if (has_gzip) CHECK_EQUAL(reduce(activate(moves_while_it_reads, next, true), std::plus<>()), 15);
}

// ---- Tables -------------------------------------------------------------------------------------

std::string quoted(const std::string& field) {
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}
model random_table(random_text& random, std::size_t count, std::size_t length,
                   csv_options options) {
  const std::string separator(1, options.separator);
  model m;
  if (random.one_in(2)) m.text += "\xef\xbb\xbf";
  if (options.header) {
    if (random.one_in(2)) m.text += "\n";
    m.text +=
        "number" + separator + quoted("a \"b\"" + separator) + separator + "c" + random.line_end();
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (random.one_in(10)) m.text += random.line_end();
    std::string bytes, record;
    const std::size_t fields = 1 + random.below(4);
    for (std::size_t f = 0; f < fields; ++f) {
      const bool in_quotes = random.one_in(2) || fields == 1;
      const std::string field = random.of(!in_quotes                ? "abc 123"
                                          : options.lines_in_quotes ? "ab\"\"\n\r,;"
                                                                    : "ab\"\",;",
                                          random.below(length + 1));
      bytes += (f > 0 ? separator : "") + (in_quotes ? quoted(field) : field);
      record += field + '|';
    }
    m.add(bytes + random.line_end(), record);
  }
  if (random.one_in(2)) m.drop_last_line_end();
  return m;
}

void each_row_is_on_one_rank() {
  random_text random(6);
  for (const bool lines_in_quotes : {false, true})
    for (const char separator : {',', ';'})
      for (const std::size_t count : {0ul, 1ul, 3ul, 20ul, 500ul})
        for (const std::size_t length : {0ul, 3ul, 40ul}) {
          const csv_options options{.header = random.one_in(2),
                                    .separator = separator,
                                    .lines_in_quotes = lines_in_quotes};
          check_reading(random_table(random, count, length, options), read_rows(options));
        }
  for (const bool lines_in_quotes : {false, true}) {
    const csv_options options{.lines_in_quotes = lines_in_quotes};
    check_reading(repeated(random, random_table(random, 1000, 100, options), 2 * mebibyte),
                  read_rows(options));
  }
}

void columns_have_names_and_numbers() {
  const std::string path = written(
      "name,\"how, many\",share\n\"Smith, \"\"J\"\"\",-12,0.5\n\nx,9223372036854775807,1e3\r\n");
  csv reader(path);
  CHECK(reader.columns() == (std::vector<std::string>{"name", "how, many", "share"}));
  CHECK_EQUAL(reader.column("share"), 2u);
  const std::size_t many = reader.column("how, many");
  long rows = 0;
  double shares = 0;
  for (const csv_row& row : reader) {
    ++rows;
    CHECK_EQUAL(row.size(), 3u);
    CHECK_EQUAL(row[0], row.as<long>(many) < 0 ? "Smith, \"J\"" : "x");
    shares += row.as<double>(2);
    CHECK_THROWS(error, row[3]);
    CHECK_THROWS(error, row.as<long>(0));
    CHECK_THROWS(error, row.as<long>(2));
    CHECK_THROWS(error, row.as<unsigned char>(1));
  }
  CHECK_EQUAL(reduce(rows, std::plus<>()), 2);
  CHECK_EQUAL(reduce(shares, std::plus<>()), 1000.5);
}

// ---- Sequences ----------------------------------------------------------------------------------

model random_fasta(random_text& random, std::size_t count, std::size_t length) {
  model m;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = random.of("@>ab1", random.below(6));
    const std::string comment = random.one_in(2) ? "" : random.of("> ab", 1 + random.below(9));
    const std::string end = random.line_end();
    std::string bytes = '>' + name + (comment.empty() ? "" : " ") + comment + end;
    std::string bases;
    for (std::size_t lines = random.below(4); lines > 0; --lines) {
      const std::string line = random.of("ACGT", random.below(length + 1));
      bases += line;
      bytes += line + end;
    }
    m.add(bytes, name + '|' + comment + '|' + bases + "||");
  }
  if (random.one_in(2)) m.drop_last_line_end();
  return m;
}
model random_fastq(random_text& random, std::size_t count, std::size_t length) {
  model m;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = random.of("@+ab1", random.below(6));
    const std::string comment = random.one_in(2) ? "" : random.of("@ +b", 1 + random.below(9));
    const std::size_t bases = 1 + random.below(length);
    const std::string sequence = random.of("ACGTN", bases);
    const std::string quality = random.of("@+I5", bases);
    const std::string end = random.line_end();
    m.add('@' + name + (comment.empty() ? "" : "\t") + comment + end + sequence + end + '+' +
              (random.one_in(2) ? "" : name) + end + quality + end,
          name + '|' + comment + '|' + sequence + '|' + quality + '|');
  }
  if (random.one_in(3)) m.drop_last_line_end();
  if (count > 0 && random.one_in(3)) m.text += "\n\r\n";
  return m;
}

void each_sequence_is_on_one_rank() {
  random_text random(7);
  for (const std::size_t count : {0ul, 1ul, 2ul, 3ul, 7ul, 50ul, 1000ul})
    for (const std::size_t length : {1ul, 5ul, 100ul}) {
      check_reading(random_fasta(random, count, length), read_sequences);
      check_reading(random_fastq(random, count, length), read_sequences);
    }
  check_reading(random_fasta(random, 6, mebibyte), read_sequences);
  check_reading(repeated(random, random_fastq(random, 1000, 150), 2 * mebibyte), read_sequences);
}

// ---- Mistakes -----------------------------------------------------------------------------------

/// True when this throws a sojourn::error that names the file, and has the words.
template <class Body>
bool refuses(const std::string& path, std::string_view words, Body body) {
  try {
    body();
  } catch (const error& e) {
    const std::string_view what = e.what();
    if (what.find(path) != what.npos && what.find(words) != what.npos) return true;
    check::fail(__FILE__, __LINE__, "the sentence names the file, and has the words", e.what());
  }
  return false;
}
/// True when the other ranks have none of this, and one has.
bool on_one_rank(bool here) { return reduce(here ? 1 : 0, std::plus<>()) == 1; }

void files_that_cannot_be_read_are_named() {
  for (const char* name : {"/missing", "/missing/file"}) {
    const std::string path = directory + name;
    CHECK_THROWS(error, lines(path));
    CHECK(refuses(path, "No such file", [&] { lines reader(path); }));
    CHECK(refuses(path, "No such file", [&] { csv reader(path); }));
    CHECK(refuses(path, "No such file", [&] { sequences reader(path); }));
  }
  CHECK(refuses(directory, "Is a directory", [&] { lines reader(directory); }));
  const std::string fifo = directory + "/fifo";
  if (rank_me() == 0) CHECK_EQUAL(mkfifo(fifo.c_str(), 0600), 0);
  barrier();
  CHECK(refuses(fifo, "no ordinary file", [&] { lines reader(fifo); }));
  CHECK(refuses("/dev/null", "no ordinary file", [&] { lines reader("/dev/null"); }));
}

void damaged_compressed_files_are_named() {
  random_text random(8);
  const std::string path = written(random_lines(random, 5000, 200).text);
  for (const char* program : programs) {
    const auto whole = compressed(path, program);
    if (!whole.has_value()) continue;
    const std::string cut = *whole + " cut";
    if (rank_me() == 0) {
      std::filesystem::copy_file(*whole, cut);
      std::filesystem::resize_file(cut, std::filesystem::file_size(cut) * 2 / 3);
    }
    barrier();
    // Each member reads all, so each gets to know.
    CHECK(refuses(cut, program, [&] { (void)read_lines(cut, team::world()); }));
    CHECK(!has_child());
  }
  const auto whole = compressed(path, "gzip");
  if (!whole.has_value()) return;
  const char* const before = std::getenv("PATH");
  const std::string programs_lie_in = before != nullptr ? before : "";
  setenv("PATH", directory.c_str(), 1);
  CHECK(refuses(*whole, "install gzip", [&] { lines reader(*whole); }));
  setenv("PATH", programs_lie_in.c_str(), 1);
  CHECK(!has_child());
  barrier();
}

void malformed_tables_are_named() {
  const csv_options by_line{.header = false};
  const csv_options across{.header = false, .lines_in_quotes = true};
  const auto refused = [&](const std::string& text, csv_options options, std::string_view words) {
    const std::string path = written(text);
    CHECK(
        on_one_rank(refuses(path, words, [&] { (void)read_rows(options)(path, team::world()); })));
    barrier();
  };
  refused("a,b\n1,\"2\n3,4\n", by_line, "lines_in_quotes");
  refused("a,b\n\"1,2\n", by_line, "lines_in_quotes");
  refused("a,b\n1,2\"\n", by_line, "at byte 4");
  refused("a,b\n1,2\"\"\n", across, "at byte 4");
  refused("a,b\n1,\"2\"3\n", by_line, "at byte 4");
  refused("a,b\n1,\"2\n3\n4\n", across, "at byte 4");
  const std::string path = written("a,b\n1,x\n");
  CHECK(refuses(path, "a, b", [&] { (void)csv(path).column("c"); }));
  CHECK(refuses(path, "without a header", [&] { (void)csv(path, by_line).column("a"); }));
  CHECK(refuses(path, "separate", [&] { csv reader(path, {.separator = '"'}); }));
  CHECK(on_one_rank(refuses(path, "the row at byte 4: field 1, \"x\"", [&] {
    for (const csv_row& row : csv(path)) (void)row.as<int>(1);
  })));
  barrier();
}

void malformed_sequences_are_named() {
  const std::string neither = written("ACGT\n");
  CHECK(refuses(neither, "at byte 0", [&] { sequences reader(neither); }));
  const std::string good = "@a\nACGT\n+\n@@@@\n";
  for (const std::string bad :
       {"@b\n", "@b\nAC\n", "@b\nAC\n+\n", "@b\nAC\n+\nIII\n", "b\nAC\n+\nII\n",
        "@b\nAC\nAC\n+\nIIII\n", "\nAC\n", "\n\n\n\n\n\n\n\n@b\nAC\n"}) {
    for (const std::size_t before : {0ul, 1ul, 2ul, 20ul}) {
      std::string text;
      for (std::size_t i = 0; i < before; ++i) text += good;
      if (before == 0 && bad[0] != '@') continue;
      const std::string path = written(text + bad);
      const int refusing =
          refuses(path, "byte", [&] { (void)read_sequences(path, team::world()); });
      CHECK(reduce(refusing, std::plus<>()) >= 1);
      barrier();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [=] {
    if (const char* text = std::getenv("SOJOURN_TEST_SEED"))
      seed = std::strtoull(text, nullptr, 10);
    if (rank_me() == 0) {
      directory = (std::filesystem::temp_directory_path() / "sojourn_readers_XXXXXX").string();
      CHECK(mkdtemp(directory.data()) != nullptr);
    }
    directory = broadcast(directory);
    check::claim("each line is on one rank", each_line_is_on_one_rank);
    check::claim("lines may be longer than a part and a stretch",
                 lines_may_be_longer_than_a_part_and_a_stretch);
    check::claim("a line may begin where a stretch does", a_line_may_begin_where_a_stretch_does);
    check::claim("compressed files are read in turn", compressed_files_are_read_in_turn);
    check::claim("a team reads a file among its members", a_team_reads_a_file_among_its_members);
    check::claim("a loop may be left and gone on with", a_loop_may_be_left_and_gone_on_with);
    check::claim("a reader leaves no child", a_reader_leaves_no_child);
    check::claim("a reader keeps its frame on its rank", a_reader_keeps_its_frame_on_its_rank);
    check::claim("each row is on one rank", each_row_is_on_one_rank);
    check::claim("columns have names and numbers", columns_have_names_and_numbers);
    check::claim("each sequence is on one rank", each_sequence_is_on_one_rank);
    check::claim("files that cannot be read are named", files_that_cannot_be_read_are_named);
    check::claim("damaged compressed files are named", damaged_compressed_files_are_named);
    check::claim("malformed tables are named", malformed_tables_are_named);
    check::claim("malformed sequences are named", malformed_sequences_are_named);
    if (rank_me() == 0) std::filesystem::remove_all(directory);
    return check::verdict();
  });
}
