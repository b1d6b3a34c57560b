#!/usr/bin/env bash
# Runs all tests of Tamga and brings what they need.
#
#   ./test.sh          vet, staticcheck, all tests with the race detector, every fuzz target shortly
#   ./test.sh --quick  only the tests, without the race detector and the fuzz targets
#
# The judges of our signatures are programs we did not write: OpenSSL with
# gost-engine, Bouncy Castle, xmllint, xmlsec and Santuario (in the JDK). They and
# PostgreSQL are Debian packages; run as root this script installs those that are
# missing. Without them the tests that
# need them are skipped in plain sight, and under CI=true they fail.
set -euo pipefail
cd "$(dirname "$0")"

quick=
case "${1:-}" in
  '') ;;
  --quick) quick=1 ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

# package: a file that shows it is there
needed=(
  gcc:/usr/bin/gcc
  libc6-dev:/usr/include/stdlib.h
  openssl:/usr/bin/openssl
  libengine-gost-openssl:/usr/lib/x86_64-linux-gnu/engines-3/gost.so
  curl:/usr/bin/curl
  default-jdk-headless:/usr/bin/javac
  libbcprov-java:/usr/share/java/bcprov.jar
  libbcpkix-java:/usr/share/java/bcpkix.jar
  libxml2-utils:/usr/bin/xmllint
  xmlsec1:/usr/bin/xmlsec1
  postgresql:/usr/lib/postgresql
)
missing=()
for entry in "${needed[@]}"; do
  [ -e "${entry#*:}" ] || missing+=("${entry%%:*}")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "== installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
  else
    echo "== not installed, their tests will be skipped: ${missing[*]}" >&2
  fi
fi

if [ -n "$quick" ]; then
  exec go test ./...
fi

echo "== gofmt, vet, staticcheck"
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "not formatted: $unformatted" >&2; exit 1; }
go vet ./...
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

echo "== tests"
go test -race -timeout 20m ./...

# A number of inputs, not a time: at the end of a time Go takes its own deadline for a
# finding now and then.
echo "== fuzz targets, ${FUZZTIME:=2000x} each"
for package in $(go list ./...); do
  # -list prints the names of the targets and a closing line that no name looks like
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
    go test -run '^$' -fuzzminimizetime 10x -fuzz "^$target\$" -fuzztime "$FUZZTIME" "$package"
  done
done
echo "== all passed"
