#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the program for Windows under Wine: a server, signatures, a stored document, a backup, an installation.
# OpenSSL judges the signatures.
#
#   packaging/windows.sh
#
# It needs the Debian packages wine64, gcc-mingw-w64-x86-64-win32, openssl, libengine-gost-openssl and curl.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD work=$(mktemp -d)
export WINEPREFIX="$work/prefix" WINEDEBUG=-all
tamga() { /usr/lib/wine/wine64 "$work/tamga.exe" "$@"; }
end() {
  /usr/lib/wine/wineserver64 -k || true # of this prefix
  rm -rf "$work"
}
trap end EXIT

GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$work/tamga.exe" ./cmd/tamga
cd "$work"
/usr/lib/wine/wine64 wineboot --init >wineboot.log 2>&1
x86_64-w64-mingw32-gcc -shared -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" \
  "$root/packaging/testdata/bcryptprimitives.c" -ladvapi32
tamga --version

echo "== serve"
tamga serve --dev --data data --listen 127.0.0.1:0 >serve.log 2>&1 &
server=$!
for ((tries = 0; ; tries++)); do
  url=$(sed -n 's/.*msg=listening .*url=\(http:[^ ]*\).*/\1/p' serve.log | tr -d '\r')
  [ -z "$url" ] || break
  kill -0 "$server" && [ "$tries" -lt 600 ] || { cat serve.log; exit 1; }
  sleep 0.5
done

echo "== signatures"
echo Hello >small.txt
head -c 20000000 /dev/urandom >large.bin # larger than what stays in memory
for file in small.txt large.bin; do
  tamga sign "$file" --data data
  tamga verify "$file.sig" --ca 'data\ca.pem' >verify.log || { cat verify.log; exit 1; }
  head -1 verify.log
  openssl cms -verify -engine gost -inform DER -in "$file.sig" -content "$file" -binary -CAfile data/ca.pem -out /dev/null
done
[ -z "$(ls data/spool)" ] || { echo "left in the spool: $(ls data/spool)"; exit 1; }

echo "== stored document"
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -1; }
password=$(sed -n '/"user"/,/}/p' data/dev.json | field password)
token=$(curl -fsS "$url/STS/oauth/token" -d grant_type=password -d username=demo --data-urlencode "password=$password" \
  -d client_id=tamga-dev -d resource=urn:cryptopro:dss:signserver:signserver | field access_token)
document=$(curl -fsS "$url/DocumentStore/api/documents" -H "Authorization: Bearer $token" -H 'CPDSS-POSTDOC: e30' \
  -H 'Content-Type: application/octet-stream' --data-binary @large.bin | field DocumentId)
curl -fsS "$url/DocumentStore/api/documents/$document/content" -H "Authorization: Bearer $token" -o back.bin
cmp large.bin back.bin

echo "== backup"
tamga backup kept --data data
[ -s kept/manifest.json ]

echo "== installation"
tamga init --yes --config inst/tamga.yaml --public-url https://sign.example.org --listen 127.0.0.1:0 >init.log || { cat init.log; exit 1; }
tamga config check --config inst/tamga.yaml >/dev/null
tamga key status --config inst/tamga.yaml
echo "== passed"
