#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# soak_aarch64.sh [ctest args]: builds Sojourn for aarch64 on another machine and runs its tests
# under qemu-user (preset aarch64). Installs what is missing, with sudo when you are not root.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
packages='g++-aarch64-linux-gnu qemu-user cmake ninja-build googletest libcli11-dev libfmt-dev
  nlohmann-json3-dev libcereal-dev wamerican'
jobs=$(nproc 2>/dev/null || echo 2)

fail() {
  echo "soak_aarch64: $*" >&2
  exit 1
}

[ "$(uname -m)" != aarch64 ] || fail "this machine is an aarch64 itself: run ./dev test instead."

# What dpkg does not know at all is missing as much as what is not installed.
missing=''
for package in $packages; do
  # shellcheck disable=SC2016  # dpkg-query expands it, not the shell
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
    missing="$missing $package"
done
# A cmake and a ninja that came in another way do as well.
command -v cmake >/dev/null 2>&1 && missing=$(echo "$missing" | sed 's/ cmake\>//')
command -v ninja >/dev/null 2>&1 && missing=$(echo "$missing" | sed 's/ ninja-build\>//')
if [ -n "$missing" ]; then
  echo "soak_aarch64: installing$missing" >&2
  as_root=''
  [ "$(id -u)" -eq 0 ] || as_root=sudo
  # An index that cannot be fetched is no failure yet: what is known may do.
  $as_root apt-get -q update >&2 || true
  # shellcheck disable=SC2086  # a list of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing \
    >&2 || fail "apt-get could not install$missing; see its reason above."
fi

cd "$root"
cmake --preset aarch64 >&2 || fail "cmake could not configure the preset aarch64."
cmake --build --preset aarch64 -j "$jobs" >&2 || fail "the build of the preset aarch64 failed."
ctest --preset aarch64 -j "$jobs" "$@" || fail "tests of the preset aarch64 failed."
