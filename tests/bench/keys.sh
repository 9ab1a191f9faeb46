#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: keys.sh SOJOURN
# Runs two short benchmarks and looks for the keys that stand beside a ratio, and for the machine.
set -eu
sojourn=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "bench_keys: $1" >&2
  cat "$scratch/out" >&2
  exit 1
}
expect() {
  for key in "$@"; do
    grep -q "\"$key\":" "$scratch/out" || fail "there is no key $key"
  done
}
"$sojourn" bench ping --quick --json >"$scratch/out" || fail 'the benchmark ping fails'
expect machine processor cores distance raw_round_trip_ns raw_round_trip_at_the_end_ns core_pairs \
  rpc_over_raw rpc_over_raw_q1 rpc_over_raw_q3 rpc_over_raw_min rpc_over_raw_pairs \
  rpc_over_raw_ours_ns rpc_over_raw_peer_ns rpc_over_mpi barrier2_over_mpi barrier8_over_mpi \
  idle_cpu_seconds
"$sojourn" bench phold --quick --json >"$scratch/out" || fail 'the benchmark phold fails'
expect machine steal_over_spread steal_over_spread_q1 steal_over_spread_q3 diffuse_over_spread \
  diffuse_over_spread_q1 none_over_spread_q3
"$sojourn" bench phold --quick >"$scratch/out" || fail 'the benchmark phold fails'
grep -q 'quartiles' "$scratch/out" || fail 'the table has no quartiles'
grep -q ' cores; .* cores: ' "$scratch/out" || fail 'the table does not say on which cores'
