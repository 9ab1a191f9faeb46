#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The installed command compiles C programs with macros, from a folder whose name has a space, and the
# installed package has the function for CMake.
# Usage: parmacs.sh PREFIX CMAKE COMPILER PROJECT WORK
set -eu
prefix=$1
cmake=$2
compiler=$3
project=$4
work=$5
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work"

"$prefix/bin/sojourn" cc -O2 "$project/sum.C" -o "$work/sum"
"$prefix/bin/sojourn" run -n 4 "$work/sum" | grep -qx 'the sum is 499500'
m4 -s "$("$prefix/bin/sojourn" cc --macros)" "$project/sum.C" >"$work/sum.c"
"$prefix/bin/sojourn" cc -O2 "$work/sum.c" -o "$work/sum2"
"$prefix/bin/sojourn" run -n 2 "$work/sum2" 2>/dev/null | grep -qx 'the sum is 499500'

"$cmake" -G Ninja -S "$project" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" "-DCMAKE_PREFIX_PATH=$prefix"
"$cmake" --build "$work/build"
ctest --test-dir "$work/build" --output-on-failure --no-tests=error
