#!/usr/bin/env bash
# Collects the licences of what a package of lamplighter contains: scripts/licenses.sh DIR LIBRARY...
# DIR gets a folder for each source: lamplighter, what is compiled in, and the owner of every LIBRARY, which is a package
# of the distribution (Debian, Ubuntu) or of a Python environment. A library without a known licence is an error.
set -euo pipefail
target=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "licenses: error: $*" >&2
  exit 1
}

# Debian's texts name the long licences in /usr/share/common-licenses instead of repeating them.
of_distribution() {
  local package=$1 name
  local text=/usr/share/doc/$package/copyright
  [ -f "$text" ] || fail "$text does not exist; install the package $package again, with its documents"
  install -D -m 644 "$text" "$target/$package/copyright"
  for name in $(grep -oE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$text" | sort -u); do
    [ ! -f "$name" ] || install -D -m 644 "$name" "$target/common-licenses/$(basename "$name")"
  done
}

of_environment() {
  local site=${1%/site-packages/*}/site-packages record folder text
  record=$(grep -lF "${1#"$site/"}," "$site"/*.dist-info/RECORD | head -n 1)
  [ -n "$record" ] || fail "no package of $site owns $1; its licence is unknown"
  folder=$(dirname "$record")
  [ -n "$(find "$folder" -ipath '*licen*' -type f)" ] || fail "$folder has no licence for $1"
  find "$folder" \( -ipath '*licen*' -o -name 'NOTICE*' \) -type f | while read -r text; do
    install -D -m 644 "$text" "$target/$(basename "${folder%-*.dist-info}")/$(basename "$text")"
  done
}

# The package that owns a file. Its list may name /lib, which is a link to /usr/lib.
owner() { dpkg-query --search "*/$(basename "$(realpath "$1")")" 2>/dev/null | grep -v '^diversion' | head -n 1 | cut -d: -f1; }

mkdir -p "$target/lamplighter"
cp LICENSE "$target/lamplighter/"
install -D -m 644 .cache/sentencepiece/LICENSE "$target/sentencepiece/LICENSE"
# The notices of the charts' script begin the file.
mkdir -p "$target/vega"
awk '{ print } /\*\// { exit }' src/bench/page/vega.min.js >"$target/vega/LICENSE"
# The tables made from ftfy begin with its notice. Its licence is the same as lamplighter's, Apache 2.0.
mkdir -p "$target/ftfy"
{ awk '/^\/\// { print; next } { exit }' src/text/mojibake_tables.inc && cat LICENSE; } >"$target/ftfy/LICENSE"
for package in nlohmann-json3-dev libcli11-dev libstb-dev; do
  of_distribution "$package"
done
for library; do
  case "$(realpath "$library")" in
    */site-packages/*) of_environment "$(realpath "$library")" ;;
    *)
      package=$(owner "$library")
      [ -n "$package" ] || fail "no package owns $library; its licence is unknown"
      of_distribution "$package"
      ;;
  esac
done
