#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The installed command starts jobs, finds the benchmarks from wherever it is called, and says so when
# they or a peer are not installed.
# Usage: command.sh PREFIX
set -u
prefix=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  cat "$work"/out "$work"/err >&2
  exit 1
}

# As in a system: reached by a link, with other programs beside it.
mkdir "$work/bin"
ln -s "$prefix/bin/sojourn" "$work/bin/sojourn"
cd "$work" || exit 1
bin/sojourn run -n 2 echo started >out 2>err || fail 'cannot start two ranks'
[ "$(grep -c '^started$' out)" -eq 2 ] || fail 'two ranks were to write a line each'

if [ -e "$prefix/libexec/sojourn/bench_driver" ] && [ -e "$prefix/libexec/sojourn/peer_raw" ]; then
  bin/sojourn bench ping --help >out 2>err || fail 'the benchmarks were not found'

  # A copy without the peers on other libraries, as of a package that leaves them out, and then
  # without any.
  mkdir -p copy/libexec
  cp -r "$prefix/bin" copy/bin
  cp -r "$prefix/libexec/sojourn" copy/libexec/sojourn
  rm -f copy/libexec/sojourn/peer_mpi_* copy/libexec/sojourn/peer_mpich_* copy/libexec/sojourn/peer_ucx_am \
    copy/libexec/sojourn/peer_grpc copy/libexec/sojourn/peer_capnp
  copy/bin/sojourn bench ping --quick >out 2>err || fail 'it needs the MPI peers'
  grep -q 'peer_mpi_pingpong is not installed' out err || fail 'it does not say which peer is missing'
  copy/bin/sojourn bench am --quick >out 2>err || fail 'it needs the peers of messages'
  for peer in peer_mpi_pingpong peer_ucx_am peer_grpc peer_capnp; do
    grep -q "$peer is not installed" out || fail "it does not say that $peer is missing"
  done
  rm -r copy/libexec
fi
[ -d copy ] || { mkdir copy && cp -r "$prefix/bin" copy/bin; }
status=0
copy/bin/sojourn bench ping >out 2>err || status=$?
[ "$status $(wc -l <err) $(wc -c <out)" = '2 1 0' ] || fail 'status 2 and one sentence were expected'
grep -q 'the benchmarks are not installed' err || fail 'it does not say what is missing'
