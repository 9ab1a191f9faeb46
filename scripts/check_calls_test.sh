#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compiles small floors, and has check_calls.sh see what is right in them and what climbs. $CXX and
# $NM name other tools than c++ and nm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
objects=$scratch/build/CMakeFiles/sojourn.dir/src
failures=0

# define FLOOR/NAME TEXT: a source, and its object.
define() {
  mkdir -p "$scratch/src/$(dirname "$1")" "$objects/$(dirname "$1")"
  echo "$2" >"$scratch/src/$1.cpp"
  "${CXX:-c++}" -c "$scratch/src/$1.cpp" -o "$objects/$1.cpp.o"
}

fresh() {
  rm -rf "$scratch/src" "$scratch/build"
  define base/clock 'int now() { return 1; } int ticks;'
  define fiber/block 'int now(); inline int shared() { return 2; } int block() { return now() + shared(); }'
  define transport/ring 'int now(); int send() { return now(); }'
  define rpc/results \
    'int block(); int send(); inline int shared() { return 2; } int answer() { return block() + send() + shared(); }'
}

# expect STATUS WORDS: runs the check on the floors as they are; its output must hold WORDS.
expect() {
  status=0
  output=$(sh "$here/check_calls.sh" "$scratch/build" "$scratch" 2>&1) || status=$?
  case $output in
    *"$2"*) found=1 ;;
    *) found=0 ;;
  esac
  if [ "$status" -ne "$1" ] || [ "$found" -eq 0 ]; then
    echo "FAILED: expected status $1 and '$2', got status $status and:"
    echo "$output"
    failures=$((failures + 1))
  else
    echo "ok: $2"
  fi
}

fresh
expect 0 'none points up'
fresh
define fiber/child_end 'int answer(); int end() { return answer(); }'
expect 1 'fiber/child_end -> rpc/results: answer()'
fresh
define fiber/child_end 'int answer(); int (*address)() = answer;'
expect 1 'fiber/child_end -> rpc/results: answer()'
fresh
define rpc/results 'int answers;'
define base/clock 'extern int answers; int now() { return answers; }'
expect 1 'base/clock -> rpc/results: answers'
fresh
define base/clock '[[gnu::weak]] int answer(); int now() { return answer ? answer() : 1; }'
expect 1 'base/clock -> rpc/results: answer()'
fresh
define rpc/results '[[gnu::weak]] int answer() { return 1; }'
define base/clock 'int answer(); int now() { return answer(); }'
expect 1 'base/clock -> rpc/results: answer()'
fresh
define fiber/block 'int send(); int block() { return send(); }'
expect 1 'fiber/block -> transport/ring: send()'
fresh
define rpc/inside/late 'int block(); int late() { return block(); }'
expect 0 'none points up'
define memory/heap 'int late(); int take() { return late(); }'
expect 1 'memory/heap -> rpc/inside/late: late()'
# The object stays behind when a source is gone.
rm "$scratch/src/memory/heap.cpp"
expect 0 'none points up'
fresh
rm -r "$scratch/src"
mkdir "$scratch/src"
expect 2 'has its source in'
rm -r "$scratch/build"
expect 2 'build the library there first'

if [ "$failures" -ne 0 ]; then
  echo "$failures checks failed"
  exit 1
fi
