#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The test of `./dev test`, with stand-ins for what builds and tests: which tests it asks for, the seed
# that they have, and what it says of tests that fail once or twice.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/scripts" "$work/cache"
cp "$(dirname "$0")/../dev" "$work/dev"
cp "$(dirname "$0")/run_tests.sh" "$work/scripts/run_tests.sh"
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
  --build)
    echo "built $* in ${CCACHE_DIR-none}"
    case " $BROKEN " in *" $(basename "$2") "*) exit 1 ;; esac
    ;;
esac
END
# Fails the tests in FAILING. When one is asked for alone, only those in RED fail again.
stand_in ctest <<'END'
build=$2
echo "asked $(basename "$build") $* with seed $SOJOURN_TEST_SEED"
logs=$build/Testing/Temporary
mkdir -p "$logs"
: >"$logs/LastTest.log"
: >"$logs/LastTestsFailed.log"
failing=$FAILING
previous=''
for word; do
  [ "$previous" != -R ] || failing=$RED
  previous=$word
done
number=0
for name in good slow $failing; do
  number=$((number + 1))
  {
    echo "$number/9 Testing: $name"
    echo "$number/9 Test: $name"
    echo "words of $name"
    echo '<end of output>'
    if [ "$name" = slow ]; then echo 'Test time =   7.50 sec'; else echo 'Test time =   0.01 sec'; fi
  } >>"$logs/LastTest.log"
done
[ -n "$failing" ] || exit 0
number=2
for name in $failing; do
  number=$((number + 1))
  echo "$number:$name" >>"$logs/LastTestsFailed.log"
done
exit 8
END

# try WORDS...: leaves status and what was said.
try() {
  status=0
  (cd "$work" && PATH="$work/bin:$PATH" SOJOURN_CCACHE="$work/cache" sh ./dev test "$@") >"$work/said" 2>&1 ||
    status=$?
}
expect() { [ "$status" -eq "$1" ] || fail "expected status $1, got $status"; }
says() { grep -q -e "$1" "$work/said" || fail "it does not say: $1"; }
silent() { if grep -q -e "$1" "$work/said"; then fail "it says: $1"; fi; }

unset CCACHE_DIR SOJOURN_SOAK_FOUND
SOJOURN_CMAKE_ARGS=
export SOJOURN_CMAKE_ARGS BROKEN='' FAILING='' RED='' SOJOURN_TEST_SEED=''

# What the gate runs: not what is long, nor what the seed has not drawn.
SOJOURN_TEST_SEED=13 try
expect 0
says '^dev: the seed of the tests is 13;'
says '^asked release .* -LE ^long\$|^not_in_draw_5\$|^benchmarks\$ with seed 13$'
says '^configured --preset release .*-DCMAKE_CXX_COMPILER_LAUNCHER=ccache'
silent 'configured .*APPS=OFF'
says "^built .*release.* in $work/cache\$"
says '^dev: preset release: built in .*, tested in .*: passed$'
says '^  over 5 s: *7.5 s  slow$'
silent 'over 5 s: .* good'

SOJOURN_TEST_SEED=13 try --sanitize
expect 0
says '^asked asan-clang .* -L ^quick\$ -LE ^long\$|^not_in_draw_5\$|^benchmarks\$|^hangs\$.* with seed 13$'
says '^configured --preset asan-clang .*SOJOURN_BUILD_APPS=OFF'

# Who names tests gets them, and who names a preset gets all of it, with what peers are compared with.
try -R btree
says '^asked release .* -R btree -LE ^benchmarks\$ with seed'
silent 'built .*benchmarks'
try --preset debug
expect 0
silent 'asked debug .*-LE'
says '^built .*debug.* benchmarks'
try --preset debug --sanitize
expect 2
try -LE slow
says '^asked release .* -LE slow with seed'
says '^built .*release.* benchmarks'

# The commit decides the seed. Here there is none, which counts as the first.
try
says '^dev: the seed of the tests is 1;'
SOJOURN_TEST_SEED=x try
expect 2
says 'must be a number from 1 to 999999999, not "x"'

# Without the cache.
status=0
(cd "$work" && PATH="$work/bin:$PATH" SOJOURN_CCACHE=off sh ./dev test) >"$work/said" 2>&1 || status=$?
expect 0
silent 'configured .*ccache'
says '^built .* in none$'

# A test that fails once is yellow; its first words are shown and kept.
FAILING='one' SOJOURN_TEST_SEED=13 try
expect 0
says '^FLAKY one 13$'
says "^  | words of one\$"
says "replay: SOJOURN_TEST_SEED=13 ./dev test -R '^one\\\$'"
[ "$(grep -c 'words of' "$work/build/flaky/release.one.log")" -eq 1 ] || fail 'build/flaky has not its words alone'
try
[ -z "$(ls "$work/build/flaky")" ] || fail 'build/flaky keeps what an earlier run left'

# More than two are red, and so is one that fails again.
FAILING='one two' try
expect 0
says '^FLAKY two 1$'
FAILING='one two three' try
expect 1
says '^3 tests are flaky; more than 2 count as a failure.$'
FAILING='one two' RED='two' try
expect 1
says '^FAILED one 1$'
says '^dev: preset release: .*: failed$'
# Many are not tried again.
FAILING='a b c d e f g h i j k' try
expect 1
says '^FAILED k 1$'
silent '^FLAKY'

# Names of tests with parameters.
FAILING='each/of(a|"b")' try
expect 0
says '^FLAKY each/of(a|"b") 1$'
[ -f "$work/build/flaky/release.each_of_a__b__.log" ] || fail 'its words are not kept'

# What failed is kept where ./dev soak wants it.
SOJOURN_SOAK_FOUND=$work/found FAILING='one' try
grep -q "./dev test -R '^one" "$work/found/release.one.log" || fail 'what was found has no line that replays it'

BROKEN=release try
expect 1
silent '^asked release'
