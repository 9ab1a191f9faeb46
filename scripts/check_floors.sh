#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Reads every #include of the tree and fails when one points up a floor, or modules of a floor include each
# other in a circle, naming what it is about. check_calls.sh sees calls that climb without an include.
#
#   scripts/check_floors.sh [--print] [ROOT]
#
# The rules:
#   1. A file of src/FLOOR includes its own floor and those below it. Floors that stand side by side
#      on one level (fiber and transport; observe, checkpoint and shared) do not know each other.
#   2. x.cpp includes its own x.hpp first, when one stands beside it, so that the header compiles
#      alone. Nothing in src/ includes the umbrella <sojourn/sojourn.hpp>.
#   3. Public headers include the standard library, the system and other public headers only.
#   4. apps, bench, tools, the containers and the readers of files (include/sojourn/containers and readers) use
#      the public API only: neither <sojourn/detail/…> nor what its namespaces detail have. A few headers of the
#      benchmarks may, which are named below. No other public header includes a container or a reader, but for
#      their umbrellas.
#   5. src/shared/pages, the rules of shared memory, includes src/base, itself and
#      its counters only, and src/object/coherence, the rules of objects, src/base and itself only: they run
#      without a runtime.
#   6. Inside a floor, neither modules nor folders include each other in a circle; x.hpp and x.cpp are the module x.
#      (A folder and one in it may.)
# Unit tests (*_test.cpp) may include whatever they test against.
set -eu

show=0
if [ "${1-}" = "--print" ]; then
  show=1
  shift
fi
scripts=$(cd "$(dirname "$0")" && pwd)
root=${1-$scripts/..}
if [ ! -d "$root" ]; then
  echo "check_floors: there is no folder $root." >&2
  exit 2
fi
cd "$root"

# One pass over all sources, in an order that does not depend on the file system.
for folder in include src apps bench tools; do
  if [ -d "$folder" ]; then
    find "$folder" -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.S' \) \
      ! -name '*_test.cpp'
  fi
done | LC_ALL=C sort | awk -v show="$show" -v levels_file="$scripts/floors.txt" '
BEGIN {
  # A level a line, the ground first; floors on one level do not include each other.
  while ((getline line < levels_file) > 0) {
    row[++levels] = line
    n = split(line, names, " ")
    for (i = 1; i <= n; i++) { level[names[i]] = levels; order[++floors] = names[i] }
  }
  # They measure the layer of messages, for which there is no public API.
  below_the_api["bench/common/one_way.hpp"] = 1
  below_the_api["bench/common/request_reply.hpp"] = 1
  # It compares the two ways in which the paper moves a thread; programs need one.
  below_the_api["bench/common/move_by_switch.hpp"] = 1
}

function complain(text) {
  printf "%s:%d: %s\n", file, line_number, text > "/dev/stderr"
  wrong++
}

# Is the path, as written in an include, a file of src/?  A first folder that is a floor says so.
function floor_of(path,    part) {
  sub(/^(\.\.?\/)+/, "", path)
  sub(/^src\//, "", path)
  if (split(path, part, "/") > 1 && part[1] in level) return part[1]
  return ""
}

function check_include(path, quoted,    to, own) {
  includes++
  to = floor_of(path)
  if (area == "src") {
    if (path == "sojourn/sojourn.hpp")
      complain("includes the umbrella header, which stands above every floor")
    if (file ~ /\.cpp$/ && !first_seen) {
      first_seen = 1
      own = file
      sub(/\.cpp$/, ".hpp", own)
      if (own in exists && "src/" path != own)
        complain("must include its own header \"" substr(own, 5) "\" first")
    }
    if (quoted && path !~ /^sojourn\// && (to == "" || path ~ /^\./))
      complain("write \"" path "\" with its floor, as \"" from "/…/" path "\"")
    if (file ~ /^src\/object\/coherence\// && to != "base" && path !~ /^object\/coherence\// && quoted)
      complain("includes \"" path "\": src/object/coherence stands on src/base alone")
    if (file ~ /^src\/shared\/pages\// && to != "base" && path !~ /^shared\/pages\// && quoted &&
        path != "sojourn/shared/counters.hpp")
      complain("includes \"" path "\": src/shared/pages stands on src/base alone")
    if (to == "" || !(from in level)) return
    if (to != from) edge[from " " to]++
    if (to == from && ("src/" path) in exists) {
      note_arrow(module_of(substr(file, 5)), module_of(path))
      note_folders(folder_of(substr(file, 5)), folder_of(path))
    }
    if (to != from && level[to] == level[from])
      complain("includes \"" path "\": " from " and " to " do not know each other")
    else if (level[to] > level[from])
      complain("includes \"" path "\", which points up from " from " to " to)
  } else if (area == "include") {
    if (to != "" || path ~ /^(\.\.\/)*src\//)
      complain("is a public header and includes \"" path "\" of src/")
    else if (quoted && path !~ /^sojourn\//)
      complain("is a public header: include \"" path "\" as <sojourn/…>")
    else if (match(path, /^sojourn\/(containers|readers)/) && file != "include/" substr(path, 1, RLENGTH) ".hpp")
      complain("includes \"" path "\": containers and readers stand on the rest of the public API")
  } else {
    if (path ~ /sojourn\/detail\// && !(file in below_the_api))
      complain("includes \"" path "\": " area "/ stands on the public API alone")
    else if (path ~ /(^|\/)src\// || ((to != "") && (("src/" path) in exists)))
      complain("includes \"" path "\" of src/: " area "/ stands on the public API alone")
  }
}

# Does the line name a namespace detail of the runtime?  Without a qualifier it does, unless the file
# has a namespace detail of its own; those of other libraries have a qualifier (CLI::detail).
function names_detail(line) {
  sub(/\/\/.*/, "", line)
  if (line ~ /(^|[^A-Za-z0-9_])(sojourn|shared)[ \t]*::[ \t]*detail([^A-Za-z0-9_]|$)/) return 1
  if (line ~ /(^|[^A-Za-z0-9_])namespace[ \t]+detail[ \t]*\{/) own_detail = 1
  if (own_detail) return 0
  return line ~ /(^|[^A-Za-z0-9_:])detail[ \t]*::/ || line ~ /namespace[ \t]+detail[ \t]*;/
}

# "fiber/block" of "fiber/block.cpp"
function module_of(path) {
  sub(/\.[a-zA-Z]+$/, "", path)
  return path
}

# "migrate/scan/" of "migrate/scan/scan.cpp"
function folder_of(path) {
  sub(/[^\/]*$/, "", path)
  return path
}

# A folder may include what stands beside the folders in it, and be included there.
function note_folders(a, b) {
  if (index(a, b) != 1 && index(b, a) != 1) note_arrow(a, b)
}

function note_arrow(a, b) {
  if (a == b || ((a " " b) in arrow)) return
  arrow[a " " b] = 1
  targets[a] = targets[a] " " b
}

# Whether arrows lead from `at` to `goal`; `seen` has the modules that were looked at.
function leads_to(at, goal, seen,    next_ones, n, i) {
  n = split(targets[at], next_ones, " ")
  for (i = 1; i <= n; i++) {
    if (next_ones[i] == goal) return 1
    if (next_ones[i] in seen) continue
    seen[next_ones[i]] = 1
    if (leads_to(next_ones[i], goal, seen)) return 1
  }
  return 0
}

function check_circles(    m, seen, kind, in_circle) {
  for (m in targets) {
    split("", seen)
    if (!leads_to(m, m, seen)) continue
    kind = m ~ /\/$/ ? "folders" : "modules"
    in_circle[kind] = in_circle[kind] " " m
  }
  for (kind in in_circle) {
    printf "these %s of src/ include each other in circles:%s\n", kind, in_circle[kind] > "/dev/stderr"
    wrong++
  }
}

{ files[++count] = $0; exists[$0] = 1 }

END {
  for (f = 1; f <= count; f++) {
    file = files[f]
    split(file, part, "/")
    area = part[1]
    from = part[2]
    if (file ~ /^include\/sojourn\/(containers|readers)\//) area = part[3]
    first_seen = 0
    own_detail = 0
    line_number = 0
    if (area == "src" && !(from in level)) {
      line_number = 1
      complain("src/" from " is no floor; the floors are: " row_text())
    }
    while ((getline line < file) > 0) {
      line_number++
      if (line ~ /^[ \t]*#[ \t]*include[ \t]*["<]/) {
        quoted = line ~ /^[^"<]*"/
        path = line
        sub(/^[^"<]*["<]/, "", path)
        sub(/[">].*$/, "", path)
        check_include(path, quoted)
      } else if (area != "src" && area != "include" && !(file in below_the_api) && names_detail(line)) {
        complain("uses a namespace detail of the runtime: " area "/ stands on the public API alone")
      }
    }
    close(file)
  }
  if (!wrong) check_circles()
  if (wrong) {
    printf "check_floors: %d faults\n", wrong > "/dev/stderr"
    exit 1
  }
  if (show) {
    for (i = floors; i >= 1; i--) {
      text = ""
      for (j = floors; j >= 1; j--)
        if ((order[i] " " order[j]) in edge)
          text = text sprintf(" %s(%d)", order[j], edge[order[i] " " order[j]])
      printf "%-10s ->%s\n", order[i], text == "" ? " nothing below" : text
    }
  }
  printf "check_floors: %d files, %d includes, none points up\n", count, includes
}

function row_text(    text, l) {
  for (l = 1; l <= levels; l++) text = text (l > 1 ? " < " : "") row[l]
  return text
}
'
