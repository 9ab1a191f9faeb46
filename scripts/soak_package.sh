#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Packs the .deb of a build and tries it in a fresh root of this distribution: it installs with what
# it depends on and nothing else, starts jobs, builds a program of a user who is not root, and leaves
# nothing behind when it is removed.
#
#   scripts/soak_package.sh [BUILD-FOLDER]     build/release unless told otherwise
#
# Needs root, debootstrap, and the distribution's archive: SOJOURN_MIRROR, or the one of apt.
set -eu

# What went wrong: one sentence, status 1.
fail() {
  echo "soak_package: $*" >&2
  exit 1
}

root=$(cd "$(dirname "$0")/.." && pwd)
build=${1-$root/build/release}
[ -f "$build/CPackConfig.cmake" ] || {
  echo "soak_package: $build is no build of Sojourn; make one with ./dev build." >&2
  exit 2
}
[ "$(id -u)" -eq 0 ] || fail "a fresh root takes root to make; run this as root."
for tool in debootstrap dpkg-shlibdeps cpack; do
  command -v "$tool" >/dev/null ||
    fail "$tool is missing; install it: apt-get install debootstrap dpkg-dev cmake."
done
of_system() { sed -n "s/^$1=\"*\([^\"]*\)\"*$/\1/p" /etc/os-release; }
suite=$(of_system VERSION_CODENAME)
archive=$(of_system ID)
# shellcheck disable=SC2016  # apt expands it, not the shell
mirror=${SOJOURN_MIRROR-$(apt-get indextargets --format '$(REPO_URI)' \
  "Codename: $suite" 'Created-By: Packages' 2>/dev/null | grep "/$archive/*$" | head -n 1)}
{ [ -n "$suite" ] && [ -n "$mirror" ]; } ||
  fail "cannot tell this distribution's archive; set SOJOURN_MIRROR to its address."

scratch=$(mktemp -d)
fresh=$scratch/root
cleanup() {
  umount "$fresh/proc" 2>/dev/null || true
  # Not into a file system that is still mounted there.
  rm -rf --one-file-system "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# run WORDS...: in the root, without this shell's environment.
run() {
  chroot "$fresh" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive HOME=/root "$@"
}
apt() { run apt-get -q -y -o Dpkg::Use-Pty=0 "$@" >>"$scratch/log" 2>&1 || { tail -n 20 "$scratch/log" >&2; return 1; }; }
say() { echo "soak_package: $*"; }

# Every file there is but for the archives and records of the package manager itself.
files() {
  find "$fresh" -xdev ! -path "$fresh/var/lib/dpkg/*" ! -path "$fresh/var/lib/apt/*" \
    ! -path "$fresh/var/cache/*" ! -path "$fresh/var/log/*" ! -path "$fresh/packages*" \
    ! -path "$fresh/proc/*" | sort
}

say "packing"
(cd "$scratch" && cpack -G DEB --config "$build/CPackConfig.cmake" -B "$scratch/packages") \
  >"$scratch/log" 2>&1 || { tail -n 20 "$scratch/log" >&2; fail "cpack failed."; }
package=$(find "$scratch/packages" -maxdepth 1 -name 'sojourn_*.deb')
[ -f "$package" ] || fail "cpack made no package sojourn_*.deb."
dpkg-deb --field "$package" Package Version Architecture Depends Recommends Suggests Installed-Size
dpkg-deb --field "$package" Depends | grep -q libc6 || fail "the package does not depend on libc6."
# MPI and Boost are for sojourn-peers alone, and fmt is in the programs.
dpkg-deb --field "$package" Depends | grep -Eq 'libopenmpi|libboost|libfmt' &&
  fail "the package depends on a library that it does not need."

say "making a root of $suite from $mirror"
debootstrap --variant=minbase "$suite" "$fresh" "$mirror" >"$scratch/log" 2>&1 ||
  { tail -n 20 "$scratch/log" >&2; fail "debootstrap failed."; }
mount -t proc proc "$fresh/proc"
mkdir "$fresh/packages"
cp "$scratch"/packages/*.deb "$fresh/packages"
run useradd --create-home walker
apt update || fail "apt cannot read the archive from within the root."
files >"$scratch/before"

say "with what it depends on alone"
apt install --no-install-recommends "/packages/${package##*/}" || fail "it does not install."
run su walker -c 'sojourn run -n 2 hostname' >"$scratch/out" || fail "it does not start a job."
[ "$(wc -l <"$scratch/out")" -eq 2 ] || fail "two ranks were to write a line each."
run sojourn bench ping --quick >"$scratch/out" 2>&1 || { cat "$scratch/out" >&2; fail "the benchmarks fail."; }
grep -q 'peer_mpi_pingpong is not installed' "$scratch/out" || fail "it does not name the missing peer."
[ -s "$fresh/usr/share/doc/sojourn/copyright" ] || fail "the licence is missing."
[ -s "$fresh/usr/share/man/man1/sojourn.1" ] || [ -s "$fresh/usr/share/man/man1/sojourn.1.gz" ] ||
  fail "the man page is missing."
apt purge sojourn || fail "it cannot be removed."
run dpkg --audit
files | diff "$scratch/before" - || fail "these files differ after it was removed (> is left behind)."

say "with a compiler, cmake and pkg-config"
apt install "/packages/${package##*/}" || fail "it does not install with what it recommends."
cat >"$fresh/home/walker/try.sh" <<'END'
set -eux
cd
sojourn new hello
cd hello
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
cmake --build build
sojourn run -n 2 build/hello
ctest --test-dir build --output-on-failure
g++ -std=c++20 -O2 -Wall -Wextra -Werror main.cpp $(pkg-config --cflags --libs sojourn) -o by_hand
sojourn run -n 2 ./by_hand
END
run su walker -c 'sh ~/try.sh' >"$scratch/out" 2>&1 || { cat "$scratch/out" >&2; fail "a program of its user does not build."; }
[ "$(grep -c '^rank [01]: 2$' "$scratch/out")" -eq 4 ] || { cat "$scratch/out" >&2; fail "a program printed something else."; }
peers=$(find "$scratch/packages" -maxdepth 1 -name "sojourn-peers_*.deb")
if [ -n "$peers" ]; then
  say "with the peers"
  apt install --no-install-recommends "/packages/${peers##*/}" || fail "sojourn-peers does not install."
  apt purge sojourn-peers || fail "sojourn-peers cannot be removed."
fi
apt purge sojourn || fail "it cannot be removed."
left=$(files | grep -i sojourn) && fail "these are left behind: $left"

say "installs, works, and leaves nothing behind"
