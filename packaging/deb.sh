#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of a program.
#
#   packaging/deb.sh VERSION ARCHITECTURE PROGRAM LICENCES SHARE DIR
#
# SHARE is a directory for /usr/share with manual pages and completions. The package is DIR/tamga_VERSION_ARCHITECTURE.deb. SOURCE_DATE_EPOCH is the time of its files,
# TAMGA_MAINTAINER the name and address of the one who publishes it ("Name <address>"). It needs
# no root and no build system of Debian: dpkg-deb packs a directory.
set -euo pipefail

[ $# = 6 ] || { sed -n '3,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
maintainer=${TAMGA_MAINTAINER:-Tamga <tamga@localhost>}
[[ $maintainer =~ ^[^\<\>[:cntrl:]]+\ \<[^\<\>[:cntrl:]\ ]+\>$ ]] || { echo "deb: TAMGA_MAINTAINER is $maintainer, want Name <address> in one line" >&2; exit 2; }
version=$1 arch=$2 program=$3 licences=$4 share=$5 out=$6
source=$(cd "$(dirname "$0")/.." && pwd)
umask 022
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

install -D -m 755 "$program" "$tree/usr/bin/tamga"
install -D -m 755 "$source/packaging/debian/tamga-admin" "$tree/usr/sbin/tamga-admin"
install -D -m 755 "$source/packaging/debian/refresh-secrets" "$tree/usr/lib/tamga/refresh-secrets"
for unit in tamga.service tamga.socket tamga-backup.service tamga-backup.timer; do
  install -D -m 644 "$source/packaging/debian/$unit" "$tree/usr/lib/systemd/system/$unit"
done
mkdir -p "$tree/usr/share"
install -D -m 644 "$source/packaging/debian/lintian-overrides" "$tree/usr/share/lintian/overrides/tamga"
cp -r "$share/." "$tree/usr/share/"
install -d -m 755 "$tree/usr/share/man/man8"
gzip -9nc "$source/packaging/debian/tamga-admin.8" >"$tree/usr/share/man/man8/tamga-admin.8.gz"
# Completion is loaded by the name of the command.
ln -s tamga "$tree/usr/share/bash-completion/completions/tamga-admin"
ln -s tamga.fish "$tree/usr/share/fish/vendor_completions.d/tamga-admin.fish"
doc=$tree/usr/share/doc/tamga
install -D -m 644 "$source/README.md" "$doc/README.md"
install -m 644 "$source/README.ru.md" "$source"/docs/*.md "$doc/"
install -D -m 644 -t "$doc/ru" "$source"/docs/ru/*.md
install -m 644 "$source/CHANGELOG.md" "$doc/"
install -D -m 644 -t "$doc/import" "$source"/docs/import/*
# What an administrator copies: alerts, the dashboard, manifests.
install -D -m 644 -t "$doc/prometheus" "$source"/packaging/prometheus/*.yaml
install -D -m 644 -t "$doc/grafana" "$source"/packaging/grafana/*.json
install -D -m 644 -t "$doc/kubernetes/base" "$source"/packaging/kubernetes/base/*.yaml
install -D -m 644 -t "$doc/kubernetes/overlays/example" "$source"/packaging/kubernetes/overlays/example/*.yaml
install -D -m 644 -t "$doc/compose" "$source"/packaging/compose/*.yaml
# A version of Debian sorts 1.0.0~rc1 before 1.0.0, and has no hyphen.
debian=${version//-/\~}
{
  echo "tamga ($debian) stable; urgency=medium"
  echo
  echo "  * See CHANGELOG.md."
  echo
  echo " -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$doc/changelog.gz"
{
  echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
  echo "Upstream-Name: Tamga"
  echo
  echo "Files: *"
  echo "Copyright: 2026 the authors of Tamga"
  echo "License: Apache-2.0"
  echo " On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0."
  echo
  echo "Comment: The program contains modules of others. licences.gz has their licences."
} >"$doc/copyright"
gzip -9nc "$licences" >"$doc/licences.gz"

mkdir "$tree/DEBIAN"
install -m 755 "$source"/packaging/debian/{postinst,prerm,postrm} "$tree/DEBIAN/"
install -m 644 "$source/packaging/debian/templates" "$tree/DEBIAN/"
# The maintainer comes last and has no meaning to sed.
quoted=$(printf '%s' "$maintainer" | sed 's,[\\/&],\\&,g')
sed -e "s/@VERSION@/$debian/" -e "s/@ARCH@/$arch/" \
  -e "s/@SIZE@/$(du -sk --apparent-size --exclude DEBIAN "$tree" | cut -f1)/" -e "s/@MAINTAINER@/$quoted/" \
  "$source/packaging/debian/control" >"$tree/DEBIAN/control"
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
chmod 644 "$tree/DEBIAN/control" "$tree/DEBIAN/md5sums" "$tree/DEBIAN/templates"
find "$tree" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/tamga_${version}_$arch.deb" >/dev/null
