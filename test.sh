#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all tests of Tamga and installs what they need.
#
#   ./test.sh          gofmt, vet and all tests, the longest in a short form: fewer repetitions, smaller
#                      documents, fewer combinations. Each program of others and each kind of case has
#                      its turn. Of tests that run a whole suite again, over PgBouncer for instance, the
#                      short form runs a part
#   CI=true ./test.sh  the long forms, and also staticcheck, the race detector, every fuzz target for a
#                      short time, and the build for Windows. A missing program fails its tests. The
#                      race detector checks internal/, where most goroutines run, but not commands,
#                      pages, and the arithmetic and the SQLite library below
#   ./test.sh --full   as with CI=true, but longer: the race detector checks everything, fuzz targets
#                      get ten times the inputs, processes are frozen for longer, a release is made
#                      twice and installed in a clean Debian, arm64 runs its tests under qemu, the
#                      program for Windows runs under Wine, and each page is judged in every size,
#                      language and colour scheme
#   ./test.sh --quick  only the tests, in the short form and with fewer programs of others. Those that
#                      compile programs, run several processes, measure or wait for half a minute, and
#                      those in a browser, are left out, and only the store runs on PostgreSQL
#   ./test.sh PACKAGE...  vet and tests of these packages, such as ./sig/... ./internal/web/rest, in the
#                      short form, or with CI=true in the long one
#
# The package internal/testsize says to tests which form they take.
#
# Each run ends with the ten dearest tests and the processor time of each package.
#
# Programs of other projects check our output: OpenSSL with gost-engine, Bouncy Castle, xmllint,
# xmlsec, Santuario (in the JDK), qpdf, MuPDF, poppler, Ghostscript, LibreOffice. iText, PDFBox and
# pdf-lib change our documents. Other such programs are the peers of our protocols: PostgreSQL,
# PgBouncer, HAProxy, GnuTLS, rsyslog, OpenLDAP, Kannel, an SMPP centre, readers of QR codes, OATH tools
# and identity providers, and systemd, skopeo, umoci, minisign and shells read our packages.
# Chromium and axe-core judge the pages. They are Debian packages, npm packages, Go programs, and
# xmlsec built with GOST from Debian's source. If run as root, this script installs the missing
# ones. Without a program its tests are skipped with a message, and with CI=true they fail.
set -euo pipefail
cd "$(dirname "$0")"

quick= full= packages=()
case "${1:-}" in
  '') ;;
  --quick) quick=1 ;;
  --full) full=1 ;;
  -*) sed -n '3,25s/^# \{0,1\}//p' "$0"; [ "$1" = --help ] && exit 0; exit 2 ;;
  *) packages=("$@") ;;
esac
race=
[ -z "$full" ] && [ "${CI:-}" != true ] || race=1

# package: a file that shows that it is installed
needed=(
  gcc:/usr/bin/gcc
  libc6-dev:/usr/include/stdlib.h
  openssl:/usr/bin/openssl
  libengine-gost-openssl:/usr/lib/x86_64-linux-gnu/engines-3/gost.so
  curl:/usr/bin/curl
  default-jdk-headless:/usr/bin/javac
  libbcprov-java:/usr/share/java/bcprov.jar
  libbcpkix-java:/usr/share/java/bcpkix.jar
  gpgsm:/usr/bin/gpgsm
  libxml2-utils:/usr/bin/xmllint
  xmlsec1:/usr/bin/xmlsec1
  python3-pysaml2:/usr/lib/python3/dist-packages/saml2/server.py
  python3-lasso:/usr/lib/python3/dist-packages/lasso.py
  python3-jsonschema:/usr/lib/python3/dist-packages/jsonschema/__init__.py
  postgresql:/usr/lib/postgresql
  pgbouncer:/usr/sbin/pgbouncer
  qpdf:/usr/bin/qpdf
  mupdf-tools:/usr/bin/mutool
  poppler-utils:/usr/bin/pdfsig
  ghostscript:/usr/bin/gs
  libitext5-java:/usr/share/java/itext5.jar
  libpdfbox2-java:/usr/share/java/pdfbox2.jar
  libnss3-tools:/usr/bin/certutil
  libreoffice-writer-nogui:/usr/lib/libreoffice/program/libswlo.so
  libreoffice-calc-nogui:/usr/lib/libreoffice/program/libsclo.so
  libreoffice-impress-nogui:/usr/lib/libreoffice/program/libsdlo.so
  python3-uno:/usr/lib/python3/dist-packages/uno.py
  make:/usr/bin/make
  libxml2-dev:/usr/include/libxml2/libxml/tree.h
  libssl-dev:/usr/include/openssl/ssl.h
  haproxy:/usr/sbin/haproxy
  gnutls-bin:/usr/bin/gnutls-cli
  kannel:/usr/sbin/bearerbox
  nodejs:/usr/bin/node
  npm:/usr/bin/npm
  zbar-tools:/usr/bin/zbarimg
  oathtool:/usr/bin/oathtool
  pskctool:/usr/bin/pskctool
  groff-base:/usr/bin/groff
  zsh:/usr/bin/zsh
  fish:/usr/bin/fish
  systemd:/usr/bin/systemd-analyze
  skopeo:/usr/bin/skopeo
  umoci:/usr/bin/umoci
  chromium:/usr/bin/chromium
  prometheus:/usr/bin/promtool
  slapd:/usr/sbin/slapd
  ldap-utils:/usr/bin/ldapmodify
  rsyslog:/usr/sbin/rsyslogd
  rsyslog-gnutls:/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so
  rsyslog-openssl:/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_ossl.so
  minisign:/usr/bin/minisign
  lintian:/usr/bin/lintian
)
[ -z "$full" ] || needed+=(
  qemu-user:/usr/bin/qemu-aarch64
  mmdebstrap:/usr/bin/mmdebstrap
  wine64:/usr/lib/wine/wine64
  gcc-mingw-w64-x86-64-win32:/usr/bin/x86_64-w64-mingw32-gcc
)
missing=()
for entry in "${needed[@]}"; do
  [ -e "${entry#*:}" ] || missing+=("${entry%%:*}")
done

# Without DWARF and the symbol table the linker is a third faster, and each of some hundred test
# programs is linked. Without cgo, tests and the programs that tests build share what is compiled, and
# checks begin before a C compiler is installed. Only the race detector needs cgo.
export GOFLAGS="${GOFLAGS:-} -ldflags=-s" CGO_ENABLED=0

# Compilers, the linker and tests spend a tenth less processor time if they collect garbage less often.
# The long forms have the setting of the caller, because some measure memory.
export TAMGA_TEST_GOGC="${GOGC:-}" GOGC="${GOGC:-400}"
{ [ -n "$race" ] && [ -z "$quick" ]; } || TAMGA_TEST_GOGC=$GOGC

# Programs without a Debian package are in the user's cache, and so are our own for this script.
judges="${XDG_CACHE_HOME:-$HOME/.cache}/tamga-judges"
mkdir -p "$judges/bin"
go build -o "$judges/bin/testcost" ./internal/testcost
export TAMGA_TEST_COST
TAMGA_TEST_COST=$(mktemp -d)
passed= # set at the end: a shell that a signal ends has no other error
finish() {
  code=$?
  [ $code != 0 ] || [ -n "$passed" ] || code=1
  wait # for an installation
  times >"$TAMGA_TEST_COST/run"
  echo "== cost"
  "$judges/bin/testcost" report || true
  rm -rf "$TAMGA_TEST_COST"
  [ $code != 0 ] || echo "== all passed"
  exit $code
}
trap finish EXIT
tests() { "$judges/bin/testcost" test -vet=off "$@"; }

install_judges() {
  if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      echo "== installing ${missing[*]}"
      export DEBIAN_FRONTEND=noninteractive
      # Tests start servers of their own, so the packages start none.
      (
        policy=/usr/sbin/policy-rc.d
        if [ ! -e $policy ]; then
          trap 'rm -f $policy' EXIT
          printf '#!/bin/sh\nexit 101\n' >$policy
          chmod +x $policy
        fi
        apt-get update -q >/dev/null
        apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
      )
    else
      echo "== not installed, their tests will be skipped: ${missing[*]}" >&2
    fi
  fi
  if [ -e /usr/bin/make ] && command -v apt-get >/dev/null; then
    internal/judge/xmlsec-gost.sh || echo "== xmlsec with GOST could not be built, its tests will be skipped" >&2
  fi
  if [ ! -d "$judges/smpp/node_modules/smpp" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$judges/smpp" smpp@0.5.1 >/dev/null ||
      echo "== the SMPP centre could not be installed, its tests will be skipped" >&2
  fi
  if [ ! -x "$judges/bin/versitygw" ]; then
    GOBIN="$judges/bin" go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 ||
      echo "== the S3 server could not be built, its tests will be skipped" >&2
  fi
  if [ ! -d "$judges/openid/node_modules/openid-client" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$judges/openid" openid-client@5.7.1 >/dev/null ||
      echo "== openid-client could not be installed, its tests will be skipped" >&2
  fi
  if [ ! -d "$judges/pdf-lib/node_modules/@cantoo/pdf-lib" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$judges/pdf-lib" @cantoo/pdf-lib@2.11.1 >/dev/null ||
      echo "== pdf-lib could not be installed, its tests will be skipped" >&2
  fi
  if [ ! -x "$judges/bin/oapi-codegen" ]; then
    GOBIN="$judges/bin" go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 ||
      echo "== the generator of Go clients could not be built, its tests will be skipped" >&2
  fi
  if ! cmp -s internal/judge/clients/go.mod.txt "$judges/openapi-go/go.mod"; then
    mkdir -p "$judges/openapi-go"
    cp internal/judge/clients/go.sum.txt "$judges/openapi-go/go.sum"
    cp internal/judge/clients/go.mod.txt "$judges/openapi-go/go.mod"
    (cd "$judges/openapi-go" && go mod download) || { rm "$judges/openapi-go/go.mod"
      echo "== the modules of Go clients could not be fetched, their tests will be skipped" >&2; }
  fi
  if [ ! -x "$judges/openapi/node_modules/.bin/openapi-ts" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$judges/openapi" @hey-api/openapi-ts@0.99.0 typescript@5.9.3 >/dev/null ||
      echo "== the generator of TypeScript clients could not be installed, its tests will be skipped" >&2
  fi
  if [ ! -d "$judges/http_ece/node_modules/http_ece" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$judges/http_ece" http_ece@1.2.1 >/dev/null ||
      echo "== http_ece could not be installed, its tests will be skipped" >&2
  fi
  if [ ! -d "$judges/axe/node_modules/axe-core" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$judges/axe" axe-core@4.14.1 >/dev/null ||
      echo "== axe-core could not be installed, the tests in a browser will be skipped" >&2
  fi
}

check() {
  echo "== gofmt, vet${race:+, staticcheck}"
  unformatted=$(gofmt -l $(git ls-files '*.go'))
  [ -z "$unformatted" ] || { echo "not formatted: $unformatted" >&2; return 1; }
  go vet ./...
  for module in packaging packaging/kubernetes browser; do
    (cd $module && go vet ./...)
  done
  [ -n "$race" ] || return 0
  # It reads and checks the source of all dependencies: 200 s of processor time.
  staticcheck="$judges/staticcheck-v0.8.2/staticcheck"
  [ -x "$staticcheck" ] || GOBIN=${staticcheck%/*} go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
  env -u GOGC "$staticcheck" ./... # it holds all packages in memory
}

# These begin first, so that none of them runs alone at the end.
longest=(./internal/adapter/store ./internal/web/{signapi,tokenapi,umsapi} ./internal/cli/admin)

# tests of the modules beside the program.
modules() {
  (cd packaging && tests ${full:+-timeout 60m} ./...)
  (cd packaging/kubernetes && tests ./...)
  (cd browser && tests -timeout 30m ./...)
}

# Many tests wait for something most of their time.
busy=$(($(nproc) + 2))

if [ -n "$quick" ]; then
  install_judges
  tests -short -p $busy -parallel 6 "${longest[@]}" ./cmd/tamga ./...
  (cd packaging && tests -short ./...)
  passed=1
  exit
fi
if [ ${#packages[@]} -gt 0 ]; then
  install_judges
  go vet "${packages[@]}"
  tests "${packages[@]}"
  passed=1
  exit
fi

[ -z "$full" ] || export TAMGA_TEST_FULL_FAULTS=1 TAMGA_TEST_RELEASE=1

# The programs are fetched while the compiler works.
install_judges &
installing=$!
check
wait $installing

echo "== tests"
limit=20m
[ -z "$full" ] || limit=90m
if [ -n "$race" ]; then
  # These packages compute and share nothing between requests. The race detector makes them ten
  # times slower, and with them every test that signs, reads the database or checks a password.
  unwatched=()
  [ -n "$full" ] || for package in modernc.org/{sqlite/lib,libc,memory} golang.org/x/crypto/{argon2,blake2b} \
    tamga/gost/{streebog,kuznyechik,magma,mode,gost28147,gost341194} tamga/gost/gost3410/internal/{impl,field,point}; do
    unwatched+=("-gcflags=$package=-race=false")
  done
  # A watched program waits a second before it ends, and tests start thousands of them.
  export GORACE="${GORACE:-atexit_sleep_ms=100}"
  # Commands and pages do one thing at a time; what they call is watched by the tests of the interfaces and of the domain.
  watched='^tamga/internal/' alone='^tamga/internal/(cli|config|corpus|extension|judge|testcost|web/pages|web/rest/openapi)(/|$)'
  [ -z "$full" ] || alone='^$'
  mapfile -t watch < <(go list ./... | grep -E "$watched" | grep -vE "$alone")
  mapfile -t rest < <(go list ./... | grep -vxF -f <(printf '%s\n' "${watch[@]}"))
  CGO_ENABLED=1 tests -race "${unwatched[@]}" -timeout $limit ./internal/adapter/store ./internal/web/{signapi,tokenapi,umsapi} "${watch[@]}"
  CGO_ENABLED=${full:-0} tests ${full:+-race} -timeout $limit ./cmd/tamga ./sig/{pdf,cades,xmldsig,asic} "${rest[@]}"
  modules # alone: a browser beside other tests took twice as long
else
  # A browser and several processes wait often, and the others compute meanwhile.
  modules &
  beside=$!
  tests -timeout $limit -p $busy -parallel 6 "${longest[@]}" ./internal/cluster ./sig/{pdf,cades,xmldsig} ./pki/cms ./internal/extension \
    ./internal/web/rest/openapi ./cmd/tamga ./...
  wait $beside
  passed=1
  exit
fi

GOOS=windows GOARCH=amd64 go build ./cmd/tamga ./internal/app

if [ -n "$full" ] && [ -e /usr/bin/qemu-aarch64 ]; then
  echo "== arm64 under qemu"
  packaging/arm64.sh
fi
if [ -n "$full" ] && [ -e /usr/lib/wine/wine64 ]; then
  echo "== Windows under Wine"
  packaging/windows.sh
fi

# A number of inputs, not a time: Go sometimes reports the end of a time limit as a finding.
: "${FUZZTIME:=$([ -n "$full" ] && echo 5000x || echo 200x)}"
echo "== fuzz targets, $FUZZTIME each"
# One build for each package, two at a time: a linker uses one processor, and takes longer than the inputs of a target.
fuzz="$TAMGA_TEST_COST/fuzz"
mkdir "$fuzz"
targets=$(grep -l '^func Fuzz' $(git ls-files '*_test.go') | xargs -n1 dirname | sort -u)
xargs -P 2 -I{} sh -c 'go test -c -fuzz=. -o "$0/$(echo {} | tr / .).test" ./{}' "$fuzz" <<<"$targets"
for dir in $targets; do
  test="$fuzz/${dir//\//.}.test"
  for target in $("$test" -test.list '^Fuzz' | sort -u); do
    echo "$dir $target"
    (cd "$dir" && "$judges/bin/testcost" run "$test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$FUZZTIME" \
      -test.fuzzminimizetime 10x -test.fuzzcachedir "$fuzz/cache") >"$fuzz/log" 2>&1 || { cat "$fuzz/log"; exit 1; }
  done
  rm "$test"
done
passed=1
