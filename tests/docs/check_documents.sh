#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The documents hold what the programs hold: each block of C++ stands in a compiled example, also those
# at the head of public headers, each link leads somewhere, each counter is explained, and each example
# is shown.
# Usage: check_documents.sh ROOT
set -u
root=$1
here=$(cd "$(dirname "$0")" && pwd)
failures=0

fail() {
  echo "$*" >&2
  failures=$((failures + 1))
}

cd "$root" || exit 1
for document in README.md docs/*.md; do
  awk -v mode=check -v examples=docs/examples -f "$here/check_documents.awk" "$document" ||
    failures=$((failures + 1))
done

for header in include/sojourn/*.hpp include/sojourn/*/*.hpp; do
  needed=0
  case ${header#include/sojourn/} in
    detail/* | "*/*.hpp") continue ;;
    rpc.hpp | future.hpp | global_ptr.hpp | objects.hpp | fork.hpp | finish.hpp | threads/thread.hpp | \
      collectives.hpp | one_sided.hpp | shared/memory.hpp) needed=1 ;;
  esac
  awk -v needed="$needed" -f "$here/check_header.awk" "$header" || failures=$((failures + 1))
done

find docs/examples -type f | while read -r file; do
  name=${file#docs/examples/}
  grep -qF -e "<!-- example: $name -->" -e "<!-- refused: ${name#refused/} -->" -e "${name##*/}" \
    README.md docs/*.md || echo "$file is shown by no document"
done >"${TMPDIR:-/tmp}/unshown.$$"
if [ -s "${TMPDIR:-/tmp}/unshown.$$" ]; then
  fail "$(cat "${TMPDIR:-/tmp}/unshown.$$")"
fi
rm -f "${TMPDIR:-/tmp}/unshown.$$"

if [ -f docs/counters.md ]; then
  for counter in $(sed -n 's/^  std::uint64_t \([a-z_]*\) = 0;.*/\1/p' include/sojourn/counters.hpp); do
    grep -q "^| \`$counter\` |" docs/counters.md || fail "docs/counters.md does not explain $counter"
  done
  for counter in $(sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' docs/counters.md); do
    grep -q "std::uint64_t $counter = 0;" include/sojourn/counters.hpp ||
      fail "docs/counters.md explains $counter, which is no counter"
  done
fi

[ "$failures" -eq 0 ] || exit 1
echo "the documents agree with the examples"
