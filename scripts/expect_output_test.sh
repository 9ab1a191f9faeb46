#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The test of cmake/ExpectOutput.cmake: neither the right words with another status pass, nor the
# right status with other words.
set -eu
script=$(dirname "$0")/../cmake/ExpectOutput.cmake
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# passes STATUS REGEX PROGRAM
passes() { cmake -DSTATUS="$1" -DEXPECT="$2" -P "$script" -- sh -c "$3" >"$said" 2>&1; }
fail() {
  echo "FAILED: $*" >&2
  cat "$said" >&2
  exit 1
}

passes 0 'a.*b; c' 'echo a; echo "b; c" >&2' || fail 'the right output and status'
passes 134 'words' 'echo words; exit 134' || fail 'a status of a failure that is expected'
if passes 0 'words' 'echo words; exit 1'; then fail 'another status'; fi
if passes 0 'words' 'echo words; kill -9 $$'; then fail 'the end by a signal'; fi
if passes 137 'words' 'echo words; kill -9 $$'; then fail 'a signal for a status'; fi
if passes 2 'words' 'echo words'; then fail 'success where a failure is expected'; fi
if passes 0 'words' 'echo others'; then fail 'other words'; fi
grep -q '^others$' "$said" || fail 'the output is not shown'
grep -q "does not match 'words'" "$said" || fail 'what is wrong is not said'
