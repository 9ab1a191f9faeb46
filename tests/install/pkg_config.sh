#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program is built by one command line with the flags of pkg-config, and runs on two ranks.
# shellcheck disable=SC2034  # eval uses them
# Usage: pkg_config.sh PREFIX PKG-CONFIG COMPILER SOURCE WORK
set -eu
prefix=$1
pkg_config=$2
compiler=$3
source=$4
work=$5
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"

# Flags are words of a shell: the prefix has a space in it, which pkg-config escapes.
# Below lib, lib64 or a folder for the machine.
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sojourn.pc)")
export PKG_CONFIG_PATH
flags=$("$pkg_config" --cflags --libs sojourn)
for level in -O2 -O3; do
  eval "\"\$compiler\" -std=c++20 $level -Wall -Wextra -Werror \"\$source\" $flags -o \"\$work/program\""
  "$prefix/bin/sojourn" run -n 2 "$work/program"
done
