#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of gost, pki and sig as programs for arm64 under qemu, in their short form.
#
#   packaging/arm64.sh [PACKAGE...]
#
# It needs the Debian package qemu-user.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- ./gost/... ./pki/... ./sig/...
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# On its own, since a for loop goes on without the packages that go list does not find.
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "$@")
for package in $packages; do
  GOARCH=arm64 CGO_ENABLED=0 go test -c -o "$work/test" "$package"
  echo "arm64 ${package#"$PWD"/}"
  # Judges are programs of this machine. Their tests run on it anyway.
  (cd "$package" && qemu-aarch64 "$work/test" -test.short -test.timeout 30m) >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
done
