#!/usr/bin/env bash
# Static checks: formatting, include layers, words, clang-tidy on the folders without Torch.
#   scripts/lint.sh         checks
#   scripts/lint.sh --fix   formats C++ and Python in place, then checks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source scripts/environment.sh
bin=.venv/bin
if [ ! -x "$bin/clang-format" ] || [ ! -f build/compile_commands.json ]; then
  scripts/setup.sh
fi

list() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done; }
mapfile -t cpp < <(list '*.cpp' '*.h' '*.cu' '*.cuh')
mapfile -t tidy < <(list 'src/base/*.cpp' 'src/image/*.cpp' 'src/text/*.cpp' 'src/tree/*.cpp' 'src/acceptance/*.cpp' \
  'tests/reference/*.cpp' ':!*_test.cpp')

if [ "${1:-}" = --fix ]; then
  "$bin/clang-format" -i "${cpp[@]}"
  "$bin/ruff" check --quiet --fix . || true
  "$bin/ruff" format --quiet .
fi

status=0
check() {
  echo "== $1"
  shift
  "$@" || status=1
}
# The wheel of clang-tidy lacks compiler headers; GCC's work.
run_tidy() {
  printf '%s\0' "${tidy[@]}" | xargs -0 -n 1 -P "$LAMPLIGHTER_JOBS" "$bin/clang-tidy" --quiet -p build \
    --extra-arg=-isystem"$(g++ -print-file-name=include)" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations 2>&1 |
    { grep -Ev '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter' || true; }
}
check "clang-format (${#cpp[@]} files)" "$bin/clang-format" --dry-run --Werror "${cpp[@]}"
check "include layers" "$bin/python" scripts/check_layers.py
check "words" "$bin/python" scripts/check_words.py
check "ruff format" "$bin/ruff" format --check --quiet .
check "ruff check" "$bin/ruff" check --quiet .
check "clang-tidy (${#tidy[@]} files)" run_tidy
exit "$status"
