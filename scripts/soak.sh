#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# soak.sh [PART...]: everything at full count, or the parts that are named; ./dev soak runs it.
#   release debug asan asan-clang release-clang debug-clang   all tests of a preset
#   valgrind   the unit tests under memcheck
#   tsan       the transport alone under the thread sanitizer, 400,000 calls
#   aarch64    scripts/soak_aarch64.sh
#   package    scripts/soak_package.sh
#   chaos      200 kills of ranks and launchers
#   hosts      jobs on several hosts, made of namespaces: all their tests, the launchers of sites among them,
#              1,000,000 hostile inputs, and 1,000 jobs, or SOJOURN_SOAK_HOSTS, of which something dies or is cut off at a random moment
#   programs   4,000 random programs (tests/programs), or SOJOURN_SOAK_PROGRAMS, of a seed that is printed, and
#              1,000,000 of the words at an access, or SOJOURN_SOAK_WORDS
#   containers 1,000,000 random operations, or SOJOURN_SOAK_CONTAINERS, of maps and counters beside a serial model, in
#              runs of fresh seeds on 1 to 8 ranks, both executions, the heap shared and not, and delayed
#   shared     shared memory: random programs of fresh seeds, SOJOURN_SOAK_SHARED [300000] of each kind and
#              protocol on simulated ranks and a hundredth of it on 1 to 8 real ones under both protections,
#              and programs of locks alone until 10,000,000 intervals are closed with memory flat
#   delay      tests/jobs under 50 seeds of SOJOURN_DELAY; SOJOURN_DELAY_SEEDS='3 17' runs these
#   moves      1,000,000 moves of threads with memory flat, on 2 and on 4 ranks
#   fuzz       clang's libFuzzer: values from the wire, and messages to a rank, each for SOJOURN_SOAK_FUZZ
#              seconds [300]; what they reach is kept in build/soak/reached, and what they find in
#              build/soak/found
#   coverage   which lines of src/ the tests run: a table of its folders and of the files with most lines
#              that never do, and the lines in build/coverage/lines, behind #####. SOJOURN_SOAK_TESTS='^(rpc|fork)\.'
#              runs these alone, SOJOURN_SOAK_TARGETS='sojourn_command job_rpc job_fork' builds these alone.
# Everything random follows from a seed that nobody has tried, which is printed, or from SOJOURN_TEST_SEED.
# A part that fails does not stop the others; the exit status tells if any did. What each says is in
# build/soak/PART.log; what failed, with the line that replays it, is kept in build/soak/found.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
all='release debug asan asan-clang release-clang debug-clang valgrind tsan aarch64 package chaos hosts programs containers shared delay moves fuzz coverage'
[ $# -gt 0 ] || eval "set -- $all"
for part; do
  case " $all " in
    *" $part "*) ;;
    *)
      echo "dev: soak has no part \"$part\"; there are: $all." >&2
      exit 2
      ;;
  esac
done
logs=$root/build/soak
found=$logs/found
mkdir -p "$logs" || exit 1
SOJOURN_TEST_SEED=${SOJOURN_TEST_SEED:-$(($(od -An -N4 -tu4 /dev/urandom) % 999999999 + 1))}
SOJOURN_CMAKE_ARGS="${SOJOURN_CMAKE_ARGS-} -DSOJOURN_TEST_FULL=ON"
export SOJOURN_TEST_SEED SOJOURN_SOAK_FOUND="$found" SOJOURN_CMAKE_ARGS
echo "soak: the seed is $SOJOURN_TEST_SEED"

# ./dev, with the cache that was asked for; jobs do not know that setting.
cache=${SOJOURN_CCACHE-}
unset SOJOURN_CCACHE
dev() { SOJOURN_CCACHE=$cache "$root/dev" "$@"; }

# Each unit test program under memcheck, at the bounds that programs of our kind need: a fiber's stack
# is another range of memory than the thread's, and a switch to it is no large frame.
valgrind_unit_tests() {
  dev build || return 1
  failed=0
  for program in "$root"/build/release/bin/tests/unit_*; do
    [ -x "$program" ] || continue
    echo "--- ${program##*/}"
    valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
      --errors-for-leak-kinds=definite --max-stackframe=33554432 --child-silent-after-fork=yes \
      "$program" || failed=1
  done
  return $failed
}

tsan() {
  dev build tsan_transport || return 1
  sh "$root/tests/tsan/run.sh" "$root/build/release/bin/tests/tsan_transport" 400000
}

chaos() {
  dev build sojourn_command btree || return 1
  sh "$root/tests/faults/chaos.sh" "$root/build/release/bin/sojourn" \
    "$root/build/release/bin/btree" "${SOJOURN_CHAOS_ROUNDS:-200}"
}

hosts() {
  dev build || return 1
  bin=$root/build/release/bin
  failed=0
  ctest --test-dir "$root/build/release" -j 2 --output-on-failure -L '^hosts$' || failed=1
  SOJOURN_TEST_INPUTS=500000 "$bin/tests/unit_hosts" --gtest_filter='strangers.*' || failed=1
  sh "$root/tests/hosts/hostile.sh" "$bin/sojourn" "$bin/tests/hostile" "$bin/tests/job_waiting" 1000000 \
    "$bin/tests/job_rpc" || failed=1
  sh "$root/tests/hosts/chaos.sh" "$bin/sojourn" "$bin/tests/job_waiting" "${SOJOURN_SOAK_HOSTS:-1000}" ||
    [ $? -eq 77 ] || failed=1
  return $failed
}

# With the heap shared, and not; each rank says what it holds.
moves() {
  dev build sojourn_command job_soak || return 1
  for way in '2 on' '4 off'; do
    SOJOURN_SOAK_MOVES=1000000 "$root/build/release/bin/sojourn" run -n "${way% *}" \
      --share "${way#* }" "$root/build/release/bin/tests/job_soak" || return 1
  done
}

programs() {
  dev build sojourn_command job_programs job_words || return 1
  sh "$root/tests/programs/run.sh" "$root/build/release/bin/sojourn" \
    "$root/build/release/bin/tests/job_programs" fresh $((${SOJOURN_SOAK_PROGRAMS:-4000} / 10)) 10 || return 1
  sh "$root/tests/programs/run.sh" "$root/build/release/bin/sojourn" \
    "$root/build/release/bin/tests/job_words" fresh $((${SOJOURN_SOAK_WORDS:-1000000} / 500)) 500
}

# Each operation is one of a rank's in one of four rounds, with plain keys and again with strings.
containers() {
  dev build sojourn_command job_maps || return 1
  failed=0
  done=0
  run=0
  while [ $done -lt "${SOJOURN_SOAK_CONTAINERS:-1000000}" ]; do
    ranks=$((run % 8 + 1))
    run=$((run + 1))
    set -- SOJOURN_TEST_SEED=$((SOJOURN_TEST_SEED + run))
    case $(((run + run / 8) % 4)) in
      1) set -- "$@" SOJOURN_EXECUTION=heap ;;
      2) set -- "$@" SOJOURN_SHARE=off ;;
      3) set -- "$@" SOJOURN_DELAY=$run ;;
    esac
    env "$@" nice "$root/build/release/bin/sojourn" run -n $ranks "$root/build/release/bin/tests/job_maps" \
      --operations 2000 || {
      failed=1
      echo "replay: $* sojourn run -n $ranks job_maps --operations 2000"
    }
    done=$((done + 2000 * 4 * 2 * ranks))
  done
  echo "containers: $done random operations in $run runs"
  return $failed
}

shared() {
  dev build sojourn_command shared_programs job_shared_random || return 1
  bin=$root/build/release/bin
  count=${SOJOURN_SOAK_SHARED:-300000}
  failed=0
  for protocol in lmw lsw seq mixed; do
    for size in '' '--pins 1' '--ranks 6 --threads 3 --pages 6 --variables 3 --locks 3 --phases 5 --steps 8' \
      '--ranks 8 --threads 3 --pages 6 --variables 3 --locks 3 --phases 5 --steps 8 --pins 1'; do
      # shellcheck disable=SC2086  # lists of words
      nice "$bin/tests/shared_programs" random --protocol $protocol --first fresh --count "$count" $size || failed=1
    done
  done
  for protocol in lmw lsw; do
    nice "$bin/tests/shared_programs" lock_only --protocol $protocol --first fresh --count 10000000 || failed=1
  done
  for ranks in 1 2 3 4 5 6 7 8; do
    for protocol in lmw lsw seq; do
      for protection in '' mprotect; do  # the usual one is userfaultfd where that works
        echo "--- $ranks ranks, $protocol, ${protection:-usual protection}"
        SOJOURN_SHARED=$protocol SOJOURN_SHARED_PROTECTION=$protection nice "$bin/sojourn" run -n $ranks \
          "$bin/tests/job_shared_random" --seed 0 --count $((count / 100)) || failed=1
      done
    done
  done
  return $failed
}

# Each seed with another number of ranks, and with the heap shared or not. Left out is what counts
# wake-ups and times, and a gibibyte.
delay() {
  dev build || return 1
  failed=0
  for seed in ${SOJOURN_DELAY_SEEDS:-$(seq 1 50)}; do
    case $((seed % 6)) in
      0) way=n2.share_on ;;
      1) way=n4.share_off ;;
      2) way=n8.share_on ;;
      3) way=n2.share_off ;;
      4) way=n4.share_on ;;
      5) way=n8.share_off ;;
    esac
    echo "--- SOJOURN_DELAY=$seed $way"
    SOJOURN_DELAY=$seed nice ctest --test-dir "$root/build/release/tests/jobs" -j 2 \
      --output-on-failure -R "\\.$way\$" -E '^(idle|counters|steady|marshal_1gib)' || failed=1
  done
  return $failed
}

# The targets have a folder of their own: nothing else can be linked with a library that counts for
# libFuzzer. Each goes on from what it reached before, and mends nothing that it finds.
fuzz() {
  cmake -S "$root" --preset release-clang -B "$root/build/fuzz" -DSOJOURN_FUZZ=ON -DSOJOURN_BUILD_APPS=OFF \
    -DSOJOURN_BUILD_BENCH=OFF || return 1
  cmake --build "$root/build/fuzz" --target fuzz_marshal fuzz_deliver || return 1
  failed=0
  for target in marshal deliver; do
    reached=$logs/reached/$target
    mkdir -p "$reached" "$found"
    set -- "$reached"
    [ $target = deliver ] || set -- "$@" "$root/tests/fuzz/corpus"
    "$root/build/fuzz/bin/tests/fuzz_$target" -max_total_time="${SOJOURN_SOAK_FUZZ:-300}" \
      -artifact_prefix="$found/$target-" -max_len=8192 -print_final_stats=1 "$@" || failed=1
  done
  return $failed
}

# What counts is the library alone. Ranks that are killed take their counts with them. Left out are
# tests of what things cost, whose figures the counting changes.
coverage() {
  folder=$root/build/coverage
  rm -f "$logs/coverage.table"
  cmake -S "$root" --preset debug -B "$folder" -DSOJOURN_COVERAGE=ON -DSOJOURN_CHECKED=OFF \
    -DSOJOURN_BUILD_BENCH=OFF || return 1
  # shellcheck disable=SC2086  # a list of words
  cmake --build "$folder" ${SOJOURN_SOAK_TARGETS:+--target $SOJOURN_SOAK_TARGETS} || return 1
  find "$folder" -name '*.gcda' -delete
  failed=0
  ctest --test-dir "$folder" -j "$(nproc)" --output-on-failure -LE long \
    ${SOJOURN_SOAK_TESTS:+-R "$SOJOURN_SOAK_TESTS"} -E '^(steady|idle|launcher\.idle)' || failed=1
  rm -rf "$folder/lines"
  mkdir "$folder/lines"
  # Without counts an object's lines have not run: what tells of them is written by the compiler. In one
  # call, which adds up what several objects have of a header.
  (cd "$folder/lines" && find "$folder/CMakeFiles/sojourn.dir" -name '*.gcno' -exec gcov {} + >summary 2>errors) ||
    failed=1
  awk -v prefix="$root/src/" -v files="$folder/lines/files" '
    BEGIN { sorted = "sort -rn >\"" files "\"" }
    /^File / {
      name = substr($0, 7, length($0) - 7)
      is_ours = index(name, prefix) == 1
      name = substr(name, length(prefix) + 1)
    }
    /^Lines executed:/ && is_ours {
      split($0, words, /[:% ]+/)
      total = words[5]
      ran = int(words[3] * total / 100 + 0.5)
      floor = name
      sub("/[^/]*$", "", floor)
      all_of[floor] += total
      ran_of[floor] += ran
      if (total > ran) printf "%6d  %5.1f %%  %s\n", total - ran, words[3], name | sorted
      is_ours = 0
    }
    END {
      close(sorted)
      for (floor in all_of) {
        printf "%6d of %6d lines, %5.1f %%  %s\n", ran_of[floor], all_of[floor],
          100 * ran_of[floor] / all_of[floor], floor | "sort -k6"
      }
      close("sort -k6")
      if (length(all_of) == 0) exit 1
      print "files with most lines that never run:"
      while (shown++ < 25 && (getline line <files) > 0) print line
    }' "$folder/lines/summary" >"$logs/coverage.table" || failed=1
  cat "$logs/coverage.table"
  return $failed
}

run_part() {
  case $1 in
    valgrind) valgrind_unit_tests ;;
    aarch64) sh "$root/scripts/soak_aarch64.sh" ;;
    package) dev build all benchmarks && sh "$root/scripts/soak_package.sh" ;;
    chaos) chaos ;;
    hosts) hosts ;;
    programs) programs ;;
    containers) containers ;;
    shared) shared ;;
    delay) delay ;;
    tsan) tsan ;;
    moves) moves ;;
    fuzz) fuzz ;;
    coverage) coverage ;;
    *) dev test --preset "$1" ;;
  esac
}

table=''
failures=0
for part; do
  started=$(date +%s)
  echo "soak: $part (build/soak/$part.log)"
  if run_part "$part" >"$logs/$part.log" 2>&1 </dev/null; then
    result='ok    '
  else
    result=FAILED
    failures=$((failures + 1))
    mkdir -p "$found"
    { echo "SOJOURN_TEST_SEED=$SOJOURN_TEST_SEED ./dev soak $part" && cat "$logs/$part.log"; } \
      >"$found/$part.$SOJOURN_TEST_SEED.log"
    echo "soak: $part failed with seed $SOJOURN_TEST_SEED; its output is kept as build/soak/found/$part.$SOJOURN_TEST_SEED.log"
    tail -n 15 "$logs/$part.log" | sed 's/^/  | /'
  fi
  if [ "$part" = coverage ] && [ -f "$logs/coverage.table" ]; then sed 's/^/  | /' "$logs/coverage.table"; fi
  line=$(printf '%s  %5d s  %s' "$result" $(($(date +%s) - started)) "$part")
  echo "soak: $line"
  table="$table$line
"
done
printf '\nsoak: summary\n%s' "$table"
[ "$failures" -eq 0 ]
