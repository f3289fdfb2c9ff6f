#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# installed_late.sh: a build that was configured before a package was there leaves out what needs it, and takes it in
# once the package is installed, by the next build and without being configured by hand. The system's own libraries
# are hidden from CMake; links in a folder beside stand for the installed packages. Without GoogleTest the libraries
# are built all the same.
set -euo pipefail

work=$(mktemp -d "${TMPDIR:-/tmp}/brimful-late-XXXXXX")
trap 'rm -rf "$work"' EXIT
build=$work/build
mkdir -p "$work/packages/include" "$work/packages/lib"

fail() {
  echo "FAIL: $*"
  cat "$work/said"
  exit 1
}

targets() {
  cmake --build "$build" --target help > "$work/said" 2>&1 || fail "the build: exit code $?"
}

hidden="/usr/include;/usr/lib;/lib"
for folder in /usr/lib/*-linux-gnu /lib/*-linux-gnu; do
  hidden="$hidden;$folder"
done
cmake -S "$BRIMFUL_ROOT" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBRIMFUL_TESTS=ON \
  -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DCMAKE_IGNORE_PATH="$hidden" -DCMAKE_PREFIX_PATH="$work/packages" \
  > "$work/said" 2>&1 || fail "without the packages it isn't configured: exit code $?"
grep -q 'Left out: zcache (libzstd-dev, liblz4-dev)' "$work/said" || fail "it isn't said that zcache is left out"
grep -q 'Left out: the tests (libgtest-dev)' "$work/said" || fail "it isn't said that the tests are left out"
targets
grep -q '^brimful: ' "$work/said" || fail "no library without the packages"
! grep -q '^zcache: ' "$work/said" || fail "the libraries of zcache are not hidden"
# Nothing came: nothing is configured again.
targets
! grep -q 'Left out' "$work/said" || fail "configured again without need"

for header in zstd.h zstd_errors.h lz4.h lz4hc.h; do
  [ ! -e "/usr/include/$header" ] || ln -s "/usr/include/$header" "$work/packages/include/"
done
for library in zstd lz4; do
  ln -s "$(gcc -print-file-name=lib$library.so)" "$work/packages/lib/lib$library.so"
done
targets
grep -q '^zcache: ' "$work/said" || fail "the libraries came, and zcache is still left out"
echo "ok: zcache is left out while its libraries are, and taken in when they come"
