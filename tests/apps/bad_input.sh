#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bad options and bad files of one program: one sentence that names what is wrong, status 2, on any number of
# ranks.
# Usage: bad_input.sh SOJOURN DIRECTORY-OF-PROGRAMS RANKS PROGRAM
set -u
sojourn=$1
bin=$2
ranks=$3
tried=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
tries=0

# is_tried PROGRAM: whether this run is about it.
is_tried() {
  [ "$1" = "$bin/$tried" ] && tries=$((tries + 1))
}

# refuses STATUS WORDS program args…: ends with STATUS, says one line that has WORDS in it (besides
# what the launcher says about the rank's status).
refuses() {
  status=$1
  words=$2
  shift 2
  is_tried "$1" || return 0
  "$sojourn" run -n "$ranks" "$@" >"$work/out" 2>"$work/all"
  got=$?
  grep -v '^sojourn run:' "$work/all" >"$work/err"
  lines=$(wc -l <"$work/err")
  if [ "$got" -ne "$status" ] || [ "$lines" -ne 1 ] || [ -s "$work/out" ] ||
    ! grep -qF -- "$words" "$work/err"; then
    failures=$((failures + 1))
    echo "on $ranks ranks: $*"
    echo "  wanted status $status and one line with: $words"
    echo "  got status $got and:"
    cat "$work/out" "$work/err"
  fi
}

# accepts WORDS program args…: ends with 0 and says WORDS on standard output.
accepts() {
  words=$1
  shift
  is_tried "$1" || return 0
  if ! "$sojourn" run -n 2 "$@" >"$work/out" 2>"$work/err" || ! grep -qF -- "$words" "$work/out"; then
    failures=$((failures + 1))
    echo "failed: $*"
    cat "$work/out" "$work/err"
  fi
}

# Output that cannot be written is no success, with the launcher and without.
if [ "$tried" = btree ] && [ -w /dev/full ]; then
  for launcher in '' "$sojourn run -n 2"; do
    # shellcheck disable=SC2086
    $launcher "$bin/btree" --help >/dev/full 2>"$work/err"
    got=$?
    if [ "$got" -ne 1 ] || ! grep -q 'cannot write' "$work/err"; then
      failures=$((failures + 1))
      echo "btree --help >/dev/full: status $got and:"
      cat "$work/err"
    fi
  done
fi

: >"$work/empty"
printf '\n\n\r\n' >"$work/blank"
printf 'short\n%s\n' "$(printf 'x%.0s' $(seq 48))" >"$work/long"
printf 'one\r\ntwo\r\none\r\n\r\nthree' >"$work/few"

for program in btree tour; do
  refuses 2 "cannot open $work/none" "$bin/$program" --keys "$work/none"
  refuses 2 "$work/empty: no keys" "$bin/$program" --keys "$work/empty"
  refuses 2 "$work/blank: no keys" "$bin/$program" --keys "$work/blank"
  refuses 2 "$work/long:2: a key of 48 bytes" "$bin/$program" --keys "$work/long"
  refuses 1 "cannot read $work" "$bin/$program" --keys "$work"
  refuses 2 "--fanout" "$bin/$program" --fanout 1
  refuses 2 "--fanout" "$bin/$program" --fanout 129
  refuses 2 "--fanout" "$bin/$program" --fanout ten
  refuses 2 "--layout" "$bin/$program" --layout nowhere
  refuses 2 "--ops" "$bin/$program" --ops 0
done
refuses 2 "--workload" "$bin/btree" --workload F
for program in btree tour counting_network; do
  refuses 2 "--requesters" "$bin/$program" --requesters 0
  refuses 2 "--requesters" "$bin/$program" --requesters -3
done
for program in btree tour counting_network uts phold em3d water fft lu gups indexgather kmers rmat sor em3d_flow mdforce \
  hot_table chains counters phases graph_walk hash_join; do
  refuses 2 "--frobnicate" "$bin/$program" --frobnicate
  refuses 2 "superfluous" "$bin/$program" superfluous
  refuses 1 "cannot write the figures to $work/no/such" "$bin/$program" --json "$work/no/such"
  refuses 2 "takes the name of a file, not 4; write ./4" "$bin/$program" --json 4
  accepts "Usage: $program" "$bin/$program" --help
done
for program in btree counting_network hot_table chains counters phases graph_walk hash_join; do
  refuses 2 "--via" "$bin/$program" --via pigeon
done
for program in hot_table chains counters phases graph_walk hash_join; do
  refuses 2 "--ops" "$bin/$program" --ops 0
  refuses 2 "--via" "$bin/$program" --via shared
done
for program in btree counting_network; do
  refuses 2 "--think" "$bin/$program" --think long
  refuses 2 "--think" "$bin/$program" --think -1
  refuses 2 "--think" "$bin/$program" --think 99999999999999
done
refuses 2 "--requests" "$bin/counting_network" --requests 0
for program in uts phold; do refuses 2 "--policy" "$bin/$program" --policy fair; done
refuses 2 "--tree" "$bin/uts" --tree T0
refuses 2 "--grain" "$bin/uts" --grain 0
for program in em3d water; do
  refuses 2 "--form" "$bin/$program" --form mpi
  refuses 2 "--variant" "$bin/$program" --variant best
  refuses 2 "--steps" "$bin/$program" --steps 0
  refuses 2 "--steps" "$bin/$program" --steps -1
done
for program in fft lu; do
  refuses 2 "--form" "$bin/$program" --form mpi
  refuses 2 "--repeats" "$bin/$program" --repeats 0
  refuses 2 "--seed" "$bin/$program" --seed x
done
refuses 2 "--log2" "$bin/fft" --log2 0
refuses 2 "--log2" "$bin/fft" --log2 29
refuses 2 "--exchange" "$bin/lu" --exchange steal
refuses 2 "--size 500 is not a multiple of --block 16" "$bin/lu" --size 500
refuses 2 "--block must be a multiple of 4, and it is 6" "$bin/lu" --size 12 --block 6
refuses 2 "--size 16 is not a multiple of --block 32" "$bin/lu" --size 16 --block 32
refuses 2 "--nodes" "$bin/em3d" --nodes 1
refuses 2 "--size" "$bin/sor" --size 2
refuses 2 "--block" "$bin/sor" --block 0
refuses 2 "--block 41 is more than --size 40" "$bin/sor" --size 40 --block 41
refuses 2 "--iterations" "$bin/sor" --iterations 0
refuses 2 "--form" "$bin/em3d_flow" --form rpc
refuses 2 "--nodes" "$bin/em3d_flow" --nodes 1
refuses 2 "--remote" "$bin/em3d_flow" --remote 101
refuses 2 "--degree" "$bin/em3d_flow" --degree 0
refuses 2 "--steps" "$bin/em3d_flow" --steps 0
refuses 2 "--k" "$bin/kmers" --k 30
refuses 2 "--k" "$bin/kmers" --k 33
refuses 2 "--form walk needs" "$bin/kmers" --form walk --random-keys 5
refuses 2 "--bases" "$bin/kmers" --bases 99
refuses 2 "--scale" "$bin/rmat" --scale 29
refuses 2 "--degree" "$bin/rmat" --degree 0
refuses 2 "--form" "$bin/rmat" --form colours
for program in gups indexgather; do
  refuses 2 "--form" "$bin/$program" --form mpi
  refuses 2 "--log2" "$bin/$program" --log2 99
  refuses 2 "--bundle" "$bin/$program" --bundle 8
done
refuses 2 "--updates" "$bin/gups" --updates 0
refuses 2 "--reads" "$bin/indexgather" --reads 0
refuses 2 "--remote" "$bin/em3d" --remote 101
refuses 2 "--degree" "$bin/em3d" --degree 0
refuses 2 "--molecules" "$bin/water" --molecules 1
refuses 2 "--step-fs: nan is no number" "$bin/water" --step-fs nan
refuses 2 "--atoms" "$bin/mdforce" --atoms 0
refuses 2 "--steps" "$bin/mdforce" --steps 0
refuses 2 "--layout" "$bin/mdforce" --layout block
refuses 2 "--cutoff" "$bin/mdforce" --cutoff 0
refuses 2 "--cutoff: nan is no number" "$bin/mdforce" --cutoff nan
refuses 2 "--processes" "$bin/phold" --processes 0
refuses 2 "--lookahead" "$bin/phold" --lookahead 0
refuses 2 "--remote" "$bin/phold" --remote 2
for option in --lookahead --delay --end --remote; do
  refuses 2 "$option: nan is no number" "$bin/phold" $option nan
done
refuses 2 "--requests" "$bin/counting_network" --requests

accepts "tree of 3 keys" "$bin/btree" --keys "$work/few" --ops 50
accepts "tree of 3 keys" "$bin/btree" --keys "$work/few" --ops 50 --ints --workload E
accepts '"nodes": 4130071' "$bin/uts" --tree T1 --json
accepts '"nodes": 4112897' "$bin/uts" --tree T3 --json
accepts '"checksum"' "$bin/phold" --end 5 --check --json
accepts '"forks_blocked"' "$bin/sor" --size 40 --block 8 --json
accepts '"forks_blocked"' "$bin/em3d_flow" --nodes 50 --json
accepts '"marshalling"' "$bin/em3d" --nodes 50 --steps 5 --json
accepts '"error_inverse"' "$bin/fft" --log2 8 --json
accepts '"residual"' "$bin/lu" --size 64 --json
accepts '"marshalling"' "$bin/water" --molecules 8 --steps 2 --json
accepts '"forks_on_heap"' "$bin/mdforce" --atoms 50 --json
accepts '"migrations_per_operation"' "$bin/counting_network" --requests 10 --json
accepts "tree of 3 keys" "$bin/btree" --keys "$work/few" --ops 50 --json "$work/figures"
if [ "$tried" = btree ] && ! grep -qF '"operations_per_second"' "$work/figures"; then
  echo 'no figures'
  failures=$((failures + 1))
fi

[ "$tries" -ge 5 ] || { echo "$tried is hardly tried: $tries times"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ]
