#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: keys.sh SOJOURN
# Runs some short benchmarks and looks for the keys that stand beside a ratio, and for the machine.
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
"$sojourn" bench phold calls --quick --json --svg "$scratch/new/ratios.svg" >"$scratch/out" ||
  fail 'the benchmarks phold and calls fail'
grep -q 'PHOLD' "$scratch/new/ratios.svg" || fail 'the ratios of phold are not drawn'
grep -q 'sojourn bench phold calls --quick --svg ratios.svg' "$scratch/new/ratios.svg" ||
  fail 'the picture does not say how it was made'
expect local_call_extra_instructions
expect machine steal_over_spread steal_over_spread_q1 steal_over_spread_q3 diffuse_over_spread \
  diffuse_over_spread_q1 none_over_spread_q3
"$sojourn" bench threads --quick --json >"$scratch/out" || fail 'the benchmark threads fails'
expect bytes_per_suspended suspended_page_table_bytes page_table_bytes_per_stack \
  page_table_bytes_per_stack_narrow page_table_bytes_per_thread page_table_bytes_per_thread_narrow
"$sojourn" bench phold --quick >"$scratch/out" || fail 'the benchmark phold fails'
grep -q 'quartiles' "$scratch/out" || fail 'the table has no quartiles'
grep -q ' cores; .* cores: ' "$scratch/out" || fail 'the table does not say on which cores'
"$sojourn" bench shared --applications none --quick --json >"$scratch/out" || fail 'the benchmark shared fails'
expect machine fault_over_rpc fault_over_rpc_q1 fault_over_rpc_q3 fault8_over_fault fault_own_over_rpc \
  fault_call_ns fault_bare_ns fault_bare_by fault_over_argo diff_over_memcmp_clean \
  diff_over_memcmp_eighth diff_over_memcmp_dense lock_over_rpc_two_hop lock_over_rpc_three_hop \
  lock_from_computing_us barrier2_over_mpi barrier4_over_mpi barrier8_over_mpi barrier_words
"$sojourn" bench shared --applications sor --paper --ranks 2 --delay 20us --out "$scratch" --json \
  >"$scratch/out" || fail 'the benchmark shared --paper fails'
expect machine paper_settings table_1 table_2 table_3_lsw table_3_seq figure_1 figure_2 figure_3 \
  figure_4 figure_5 figure_6 figure_7 paper_runs rank_seconds counters
for figure in 1 2 3 5 6 7_lmw 7_lsw 7_seq; do
  grep -q '</svg>' "$scratch/shared_figure_$figure.svg" || fail "Figure $figure is not drawn"
done
"$sojourn" bench policies --quick --out "$scratch" --json >"$scratch/out" || fail 'the benchmark policies fails'
expect machine cache_miss_over_rpc fetch_over_rpc cache_miss_over_rpc_q1 cache_read_hit_over_plain_call \
  replicated_read_over_plain_read automatic_overhead \
  rpc_messages_over_migrate rpc_messages_over_migrate_replicated_root network_words_cache_over_migrate breakdown tables_1_to_4 figures_2_and_3 programs \
  hit_rate words_per_operation paper_scheme paper_operations_per_1000_cycles
for program in hot_table chains counters phases graph_walk hash_join; do
  expect ${program}_migrate_over_rpc ${program}_cache_over_rpc_q3
done
for figure in 2 3; do
  grep -q '</svg>' "$scratch/policies_figure_${figure}_think_0.svg" || fail "Figure $figure is not drawn"
done
for wrong in 'all ping' 'ping --svg /proc/none/ratios.svg' 'shared --size paper' 'shared --applications sors' 'shared --paper --ranks 1' 'ping --paper'; do
  # shellcheck disable=SC2086  # words
  if "$sojourn" bench $wrong >"$scratch/out" 2>&1; then fail "this is not refused: $wrong"; fi
done
