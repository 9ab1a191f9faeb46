#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Reads the symbols of the library's objects and fails when a floor uses what one above it or beside
# it defines, naming both sides and the symbol. check_floors.sh reads includes: it does not see a
# call that climbs through a public header, which declares what any floor may define.
#
#   scripts/check_calls.sh BUILD_FOLDER [ROOT]
#
# BUILD_FOLDER holds a build of the library, ROOT its sources. $NM names an nm for other
# architectures. What several objects define (inline functions, templates) belongs to no floor.
# What a floor has done by those above it is in its table of hooks (fiber/hooks.hpp).
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo 'usage: check_calls.sh BUILD_FOLDER [ROOT]' >&2
  exit 2
fi
scripts=$(cd "$(dirname "$0")" && pwd)
root=$(cd "${2-$scripts/..}" && pwd)
objects=$1/CMakeFiles/sojourn.dir/src
if [ ! -d "$objects" ]; then
  echo "check_calls: there is no folder $objects: build the library there first." >&2
  exit 2
fi
cd "$objects"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The object of a source that is gone may still be there.
find . -name '*.o' | sed 's|^\./||' | LC_ALL=C sort | while read -r object; do
  if [ -f "$root/src/${object%.o}" ]; then echo "$object"; fi
done | xargs -r "${NM:-nm}" -A -p >"$scratch/symbols"

awk -v floors="$scripts/floors.txt" -v climbs="$scratch/climbs" '
BEGIN {
  while ((getline line < floors) > 0) {
    ++l
    n = split(line, names, " ")
    for (i = 1; i <= n; i++) level[names[i]] = l
  }
}

# fiber/block.cpp.o:0000000000000040 T symbol; nothing stands before U, w and v, which are undefined.
{
  object = $1
  sub(/:.*/, "", object)
  kind = $(NF - 1)
  if (kind ~ /^[Uwv]$/) {
    used[object " " $NF] = 1
  } else if (kind ~ /^[A-Zu]$/) {
    definitions[$NF]++
    defined_by[$NF] = object
  }
}

function floor_of(object) {
  sub(/\/.*/, "", object)
  return object
}

# "fiber/block" of "fiber/block.cpp.o"
function module_of(object) {
  sub(/\.[a-zA-Z]+\.o$/, "", object)
  return object
}

END {
  for (use in used) {
    split(use, part, " ")
    if (definitions[part[2]] != 1) continue
    total++
    user = part[1]
    definer = defined_by[part[2]]
    if (floor_of(user) == floor_of(definer)) continue
    if (level[floor_of(definer)] >= level[floor_of(user)])
      print module_of(user) " -> " module_of(definer) ": " part[2] > climbs
  }
  printf "check_calls: %d uses of symbols that other objects define\n", total
}' "$scratch/symbols" >"$scratch/total"

if [ -s "$scratch/climbs" ]; then
  LC_ALL=C sort "$scratch/climbs" | c++filt >&2
  echo "check_calls: $(wc -l <"$scratch/climbs") uses point up, or to a floor beside" >&2
  exit 1
fi
if [ ! -s "$scratch/symbols" ]; then
  echo "check_calls: no object in $objects has its source in $root/src." >&2
  exit 2
fi
echo "$(cat "$scratch/total"), none points up"
