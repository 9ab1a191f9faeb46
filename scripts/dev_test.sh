#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The test of `./dev test`, with stand-ins for what builds and tests: a preset that fails does not
# keep the next from being tried, and the end tells of each.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cp "$(dirname "$0")/../dev" "$work/dev"
echo '{}' >"$work/CMakePresets.json"

fail() {
  echo "FAILED: $*" >&2
  cat "$work/said" >&2
  exit 1
}

# stand_in NAME: reads the text of a program from standard input.
stand_in() {
  { echo '#!/bin/sh' && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
stand_in dpkg-query <<'END'
for word; do printf '%s=installed ' "$word"; done
END
stand_in cmake <<'END'
case $1 in
  --preset) echo "configured $*" && mkdir -p "build/$2" && touch "build/$2/build.ninja" ;;
  --build) case " $BROKEN " in *" $(basename "$2") "*) exit 1 ;; esac ;;
esac
END
stand_in ctest <<'END'
preset=$(basename "$2")
echo "tested $preset"
echo "asked $preset $*"
case " $FAILING " in *" $preset "*) exit 8 ;; esac
END

# try WORDS...: leaves status and what was said.
try() {
  status=0
  (cd "$work" && PATH="$work/bin:$PATH" sh ./dev test "$@") >"$work/said" 2>&1 || status=$?
}
expect() { [ "$status" -eq "$1" ] || fail "expected status $1, got $status"; }
says() { grep -q -e "$1" "$work/said" || fail "it does not say: $1"; }

export BROKEN='' FAILING=''
try
expect 0
says '^tested release$'
says '^tested asan$'
says '^dev: tests of preset release: passed$'
says '^dev: tests of preset asan: passed$'
says '^asked asan .*-L quick'
says '^configured --preset asan .*SOJOURN_BUILD_APPS=OFF'
if grep -q '^configured --preset release .*APPS=OFF' "$work/said"; then fail 'release is without applications'; fi
if grep -q '^asked release .*-L quick' "$work/said"; then fail 'release leaves tests out'; fi

FAILING=release
try -R btree
expect 1
says '^tested asan$'
says '^dev: tests of preset release: failed; .*--preset release --rerun-failed$'
says '^dev: tests of preset asan: passed$'
says '^dev: tests failed in: release\.$'

FAILING='release asan'
try
expect 1
says '^dev: tests failed in: release asan\.$'

FAILING='' BROKEN=release
try
expect 1
says '^tested asan$'
says '^dev: tests of preset release: did not build$'

BROKEN='' FAILING=debug
try --preset debug
expect 1
if grep -q -e '-L quick' "$work/said"; then fail 'a preset that was asked for leaves tests out'; fi
says '^dev: tests failed in: debug\.$'
