#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a release of the commit that is checked out.
#
#   packaging/release.sh VERSION DIR
#
# DIR gets a static program for each platform, its bill of materials (CycloneDX), the licences of the
# modules in it, Debian packages, a container image (OCI layout), what an administrator copies (alerts, the
# dashboard, manifests), and SHA256SUMS. The same commit, version and Go give the same bytes in any
# directory. VERSION is a number such as 1.2.3.
#
# It needs a clone of the repository, Go and git, and dpkg-deb for the packages.
# TAMGA_RELEASE_TARGETS="linux/amd64" makes fewer platforms.
# TAMGA_RELEASE_KEY=FILE signs SHA256SUMS with a key of minisign (minisign -G). Its password is asked for, or is in
# TAMGA_RELEASE_PASSWORD. If packaging/release.pub exists, the signature must verify under it.
set -euo pipefail

[[ $# = 2 && $1 =~ ^[0-9]+\.[0-9]+\.[0-9]+([~.+-][A-Za-z0-9.+~-]+)?$ ]] || { sed -n '3,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
key=
if [ -n "${TAMGA_RELEASE_KEY-}" ]; then
  key=$(realpath -- "$TAMGA_RELEASE_KEY")
  [ -r "$key" ] || { echo "release: $key cannot be read" >&2; exit 1; }
fi
# Nothing but the signing gets the password.
password_given=${TAMGA_RELEASE_PASSWORD+yes} password=${TAMGA_RELEASE_PASSWORD-}
unset TAMGA_RELEASE_PASSWORD
cd "$(dirname "$0")/.."
[ -z "$(ls -A "$out")" ] || { echo "release: $out is not empty" >&2; exit 1; }
# In a linked worktree Go finds no repository, and the programs would not name their commit.
[ -d .git ] || { echo "release: $PWD is not a clone of the repository; a linked worktree is not enough" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || { echo "release: there are changes that are not committed" >&2; exit 1; }

# Nothing of the machine may get into a file.
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOTOOLCHAIN=local GOEXPERIMENT= GOWORK=off
export GOFLAGS='-trimpath -buildvcs=true -mod=readonly'
umask 022
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go -C packaging build -buildvcs=false -o "$work/packaging" .

# The npm packages in the program.
mapfile -t scripts < <(find internal -name package.json -printf '%h\n' | sort)

programs=() images=()
for target in ${TAMGA_RELEASE_TARGETS:-linux/amd64 linux/arm64 windows/amd64}; do
  os=${target%/*} arch=${target#*/}
  name=tamga_${version}_${os}_$arch
  program=$out/$name
  [ "$os" != windows ] || program+=.exe
  echo "== $target"
  GOOS=$os GOARCH=$arch go build -ldflags "-s -w -buildid= -X main.version=$version" -o "$program" ./cmd/tamga
  go version -m "$program" | grep -q "vcs.revision=$commit\$" || { echo "release: $program does not name its commit" >&2; exit 1; }
  "$work/packaging" sbom "$version" "$program" "${scripts[@]}" >"$out/$name.cdx.json"
  programs+=("$program")
  [ "$os" = linux ] || continue
  images+=("$arch=$program")
done
"$work/packaging" licences "${programs[@]}" "${scripts[@]}" >"$out/licences.txt"

# What the program says of itself: manual pages and completions. It must run on this machine.
here=$out/tamga_${version}_$(go env GOHOSTOS)_$(go env GOHOSTARCH)
if [ ! -e "$here" ]; then
  here=$work/tamga
  go build -ldflags "-s -w -buildid= -X main.version=$version" -o "$here" ./cmd/tamga
fi
share=$work/share
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
"$here" completion bash >"$share/bash-completion/completions/tamga"
"$here" completion zsh >"$share/zsh/vendor-completions/_tamga"
"$here" completion fish >"$share/fish/vendor_completions.d/tamga.fish"
"$here" manual >"$share/man/man1/tamga.1"
"$here" complete -- "" | cut -f1 | while read -r command; do
  "$here" manual "$command" >"$share/man/man1/tamga-$command.1"
done
gzip -9n "$share"/man/man1/*.1

for image in "${images[@]}"; do
  packaging/deb.sh "$version" "${image%%=*}" "${image#*=}" "$out/licences.txt" "$share" "$out"
done
[ ${#images[@]} = 0 ] || "$work/packaging" image "$version" "$commit" "$SOURCE_DATE_EPOCH" "$out/tamga_${version}_image.tar" "${images[@]}"
tar --create --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' \
  --transform "s,^packaging,tamga-$version," packaging/prometheus packaging/grafana packaging/compose \
  $(git ls-files 'packaging/kubernetes/*.yaml' packaging/kubernetes/backup.Dockerfile) |
  gzip -9n >"$out/tamga_${version}_operations.tar.gz"
cd "$out"
sha256sum -- * >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" .
if [ -n "$key" ]; then
  [ -z "$password_given" ] || export TAMGA_RELEASE_PASSWORD=$password
  "$work/packaging" sign "$key" SHA256SUMS "tamga $version, commit $commit"
  unset TAMGA_RELEASE_PASSWORD
  pub=$OLDPWD/packaging/release.pub
  [ ! -e "$pub" ] || "$work/packaging" verify "$pub" SHA256SUMS
fi
echo "== $out"
ls -l "$out"
