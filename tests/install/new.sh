#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `sojourn new` writes the project that docs/getting_started.md shows; it builds and runs as it says,
# from an installed tree and from the build tree. Nothing that exists is touched, and bad names get
# one sentence.
# Usage: new.sh PREFIX CMAKE COMPILER EXAMPLE WORK COMMAND-OF-THE-BUILD-TREE
set -eu
prefix=$1
cmake=$2
compiler=$3
example=$4
work=$5
built=$6
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work"
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  cat out err >&2 || true
  exit 1
}

refused() {
  pattern=$1
  shift
  status=0
  "$prefix/bin/sojourn" new "$@" >out 2>err || status=$?
  [ "$status $(wc -l <err) $(wc -c <out)" = '2 1 0' ] || fail "new $*: not status 2 and one sentence"
  grep -q -e "$pattern" err || fail "new $*: standard error lacks: $pattern"
  [ "$(ls)" = "$(printf 'err\nout')" ] || fail "new $*: something was written"
}
refused 'no name was given'
refused 'takes one NAME' one two
refused 'takes one NAME' --fast
refused "'' cannot name a program" ''
refused "'2x' cannot name a program" 2x
refused "'a b' cannot name a program" 'a b'
refused "'../x' cannot name a program" ../x
refused "'test' means something else" test
refused 'cannot make the folder' "$(printf '%0300d' 0 | tr 0 n)"

"$prefix/bin/sojourn" new --help >out 2>err || fail 'no help'
grep -q 'sojourn run -n 4 build/hello' out || fail 'the help shows no example'

# compare: what was written is what the documents show, but for the line about the licence.
compare() {
  for file in main.cpp CMakeLists.txt; do
    sed 1d "$example/$file" | diff -u - "hello/$file" || fail "$file is not the one of the documents"
  done
  [ "$(ls hello)" = "$(printf 'CMakeLists.txt\nREADME.md\nmain.cpp')" ] || fail 'more or less was written'
}

# as_told: runs the commands that were printed, with this compiler, in a folder with this name.
as_told() {
  sed -n 's/^  //p' out >commands
  [ "$(wc -l <commands)" -eq 4 ] || fail 'four commands were expected'
  (
    CXX=$compiler
    export CXX
    sh -eu commands >ran 2>&1
  ) || { cat ran >&2; fail 'the commands that it prints do not work'; }
  for rank in 0 1 2 3; do
    grep -qx "rank $rank: 2" ran || { cat ran >&2; fail "rank $rank did not say what it should"; }
  done
}

# From the installed tree by its path, and by name; then a second time.
"$prefix/bin/sojourn" new hello >out 2>err || fail 'nothing was written'
compare
as_told
ctest --test-dir hello/build --output-on-failure --no-tests=error
status=0
"$prefix/bin/sojourn" new hello >out 2>err || status=$?
[ "$status" -eq 2 ] || fail 'it must not write into what is there'
grep -q "already a 'hello'" err || fail 'it does not say what is there'
rm -rf hello
PATH="$prefix/bin:$PATH" sojourn new hello >out 2>err || fail 'nothing was written'
(PATH="$prefix/bin:$PATH" && export PATH && "$cmake" -S hello -B hello/build -DCMAKE_CXX_COMPILER="$compiler") \
  >ran 2>&1 || { cat ran >&2; fail 'cmake does not find the package beside the command in PATH'; }
rm -rf hello

# From the build tree, which need not be installed.
"$built" new hello >out 2>err || fail 'nothing was written'
as_told
