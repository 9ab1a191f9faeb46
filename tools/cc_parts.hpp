// SPDX-License-Identifier: Apache-2.0
// The parts of `sojourn cc`: what its words mean, what it was installed with, how it runs other
// programs, and the tree of files that m4 has expanded.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sojourn::tools {

/// What `sojourn cc` needs of the place where it is installed: share/sojourn/cc.conf.
struct cc_config {
  std::filesystem::path folder;      ///< share/sojourn.
  std::filesystem::path include;     ///< Where sojourn_shared.h is.
  std::filesystem::path library;     ///< libsojourn.a
  std::vector<std::string> compile;  ///< Flags.
  std::vector<std::string> link;

  std::filesystem::path macros() const { return folder / "parmacs.m4"; }
};
/// Throws sojourn::error when this command lies where nothing is beside it.
cc_config read_cc_config();

/// The words after `sojourn cc`.
struct cc_request {
  std::vector<std::string> sources;  ///< What is compiled, in order.
  /// What is linked, in order: names of files, -l… and -L….
  std::vector<std::string> inputs;
  std::vector<std::string> compile_options;
  std::vector<std::string> link_options;
  std::vector<std::filesystem::path> include_folders;  ///< -I and -iquote.
  std::vector<std::filesystem::path> library_folders;  ///< -L.
  std::string output;
  std::string stop;  ///< -c, -S, -E, -M, -MM or -fsyntax-only, or "": link.
  bool relocatable = false;
  bool dynamic = false;
  bool verbose = false;
  bool wants_macros = false;
  bool wants_help = false;
  bool passes_on = false;  ///< Nothing but a question to the compiler: --version.
};
/// Throws sojourn::error with one sentence.
cc_request parse_cc(const std::vector<std::string>& words);

/// True where m4 comes before the compiler, by the name of a file.
bool is_for_m4(const std::filesystem::path& file);
bool is_source(const std::filesystem::path& file);

/// A folder that is gone when this is, even if a signal ends the command meanwhile.
class temporary_folder {
 public:
  temporary_folder();
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Where what a program writes goes, if not where this command's goes.
struct output_files {
  std::filesystem::path output;
  std::filesystem::path errors;
};
/// Runs a program found by PATH; its exit status. Throws sojourn::error with `missing` when it is
/// not there.
int run_program(const std::vector<std::string>& words, const std::string& missing,
                const output_files& to = {});

/// Source files and the headers they include, as m4 expands them: a tree of folders like that of
/// the originals, so that files name each other as before.
class expanded_sources {
 public:
  expanded_sources(const cc_config& config, const std::filesystem::path& folder,
                   std::vector<std::filesystem::path> include_folders, bool verbose);

  /// What to compile in place of `source`: a file of the tree, or `source` itself where neither it
  /// nor what it includes has macros. Throws sojourn::error with one sentence.
  std::filesystem::path expand(const std::filesystem::path& source);
  /// The options by which the compiler finds headers, the tree's first.
  std::vector<std::string> options_for(const std::filesystem::path& source) const;

 private:
  struct found {
    std::filesystem::path original;  ///< "" when it is none of the program's.
    std::filesystem::path made;      ///< Where it stands in the tree.
  };
  std::filesystem::path place_of(const std::filesystem::path& folder) const;
  found find(const std::string& name, bool quoted, const std::filesystem::path& folder) const;
  /// Expands or copies a file and what it includes; true when there were macros anywhere.
  bool take(const std::filesystem::path& original, const std::filesystem::path& made);
  std::string run_m4(const std::filesystem::path& file, const std::string& text);

  const cc_config& config_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> include_folders_;
  bool verbose_;
  std::map<std::filesystem::path, bool> taken_;  ///< By place in the tree.
};

/// In what m4 has made: whether a semicolon belongs where G_MALLOC ends, by what follows.
std::string with_semicolons(std::string text);

}  // namespace sojourn::tools
