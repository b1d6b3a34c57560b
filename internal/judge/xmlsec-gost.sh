#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds xmlsec1 with GOST, which Debian's own build leaves out, from Debian's
# source of it, and keeps the signatures that this source is tested with: those of
# the interoperability rounds of the W3C. It takes half a minute, once.
#
#   internal/judge/xmlsec-gost.sh
#
# Needed: gcc, make, libxml2-dev, libssl-dev, and apt with a Debian mirror; no root.
# The tests find the result in the user's cache directory (see XMLSecGOST).
set -euo pipefail

version=1.2.37
place="${XDG_CACHE_HOME:-$HOME/.cache}/tamga-judges/xmlsec1-$version"
[ -x "$place/xmlsec1" ] && [ -d "$place/tests" ] && exit 0

mkdir -p "${place%/*}"
work=$(mktemp -d "${place%/*}/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# Sources of Debian 12 whatever the machine's own list has, checked by its keys.
mkdir -p lists/partial out
echo 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main' > sources.list
options=(-q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
  -o "Dir::Cache=$work" -o APT::Get::List-Cleanup=0 -o "APT::Sandbox::User=$(id -un)")
apt-get "${options[@]}" update > log
apt-get "${options[@]}" source --download-only xmlsec1 >> log
tar xzf "xmlsec1_$version.orig.tar.gz"
cd "xmlsec1-$version"

# The compiler takes longer to optimize than all tests take to run it.
./configure -q --disable-shared --enable-static-linking --disable-crypto-dl --disable-apps-crypto-dl \
  --enable-gost --enable-gost2012 --with-openssl --without-gnutls --without-gcrypt --without-nss --without-nspr \
  --without-libxslt --disable-docs --disable-mans CFLAGS=-O0 > ../log 2>&1 || { tail -20 ../log >&2; exit 1; }
make -s -j"$(nproc)" > ../log 2>&1 || { tail -20 ../log >&2; exit 1; }

mv tests apps/xmlsec1 ../out
rm -rf "$place"
mv ../out "$place"
echo "built $place/xmlsec1"
