#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Replaces pdf.js by another version of the npm package pdfjs-dist:
#
#   internal/web/pages/pdfjs/renew.sh 6.5.438
#
# npm compares the package with the checksum of the registry. SHA256SUMS has the checksums of what is
# kept here; a test compares them. A release lists the package by its package.json. Afterwards change version in pdfjs.go.
set -euo pipefail
version=${1:?which version?}
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "pdfjs-dist@$version" >/dev/null
tar -xzf "$work"/*.tgz -C "$work"
cp "$work/package/build/pdf.min.mjs" "$work/package/build/pdf.worker.min.mjs" "$work/package/LICENSE" "$work/package/package.json" .
chmod 644 ./*.mjs LICENSE package.json
sha256sum LICENSE package.json pdf.min.mjs pdf.worker.min.mjs >SHA256SUMS
