#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The check of the documents fails where it should: a block that differs, one that nothing compiles,
# a broken link, a counter that is not explained, an example of a header that differs or is missing.
# Usage: check_documents_test.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/docs/examples" "$work/include/sojourn"
failures=0

printf 'int main() {\n  return 0;\n}\n' >"$work/docs/examples/empty.cpp"
printf '  std::uint64_t cuts = 0;  ///< Cuts.\n' >"$work/include/sojourn/counters.hpp"
printf '| `cuts` | cuts |\n' >"$work/docs/counters.md"

# expect STATUS WORDS: what the check says of README.md.
expect() {
  said=$(sh "$here/check_documents.sh" "$work" 2>&1)
  status=$?
  case $said in
    *"$2"*) ;;
    *) status="$status without \"$2\"" ;;
  esac
  if [ "$status" != "$1" ]; then
    printf 'status %s instead of %s; it said:\n%s\n' "$status" "$1" "$said" >&2
    failures=$((failures + 1))
  fi
}
document="$work/README.md"

good='<!-- example: empty.cpp -->
```cpp
  return 0;
```'
printf '# Title\n\n%s\n\n[here](#title) [there](docs/counters.md)\n' "$good" >"$document"
expect 0 'agree'
printf '%s\n' "$good" | sed 's/return 0/return 1/' >"$document"
expect 1 'does not stand in'
printf '%s\n' "$good" | sed 's/empty/absent/' >"$document"
expect 1 'there is no example'
printf '%s\n' "$good" | sed 1d >"$document"
expect 1 'nothing compiles it'
printf '%s\n' "$good" | sed '$d' >"$document"
expect 1 'not closed'
printf '%s\n[x](missing.md)\n' "$good" >"$document"
expect 1 'leads nowhere'
printf '%s\n[x](docs/counters.md#none)\n' "$good" >"$document"
expect 1 'no heading'
printf 'nothing\n' >"$document"
expect 1 'shown by no document'
printf '%s\n' "$good" >"$document"
printf '| `images` | images |\n' >"$work/docs/counters.md"
expect 1 'does not explain cuts'
expect 1 'explains images'

printf '| `cuts` | cuts |\n' >"$work/docs/counters.md"
header="$work/include/sojourn/fork.hpp"
printf '// Nothing (docs/examples/empty.cpp):\n//\n//     return 0;\n#pragma once\n' >"$header"
expect 0 'agree'
printf '// Nothing (docs/examples/empty.cpp):\n//\n//     return 1;\n#pragma once\n' >"$header"
expect 1 'does not stand in'
printf '// Nothing (docs/examples/empty.cpp):\n//\n//     int main() {\n//     return 0;\n#pragma once\n' >"$header"
expect 1 'does not stand in'
printf '// Nothing (docs/examples/empty.cpp):\n#pragma once\n' >"$header"
expect 1 'an example was expected'
printf '// Nothing.\n#pragma once\n' >"$header"
expect 1 'has no example'

[ "$failures" -eq 0 ] && echo 'the check notices what it should'
