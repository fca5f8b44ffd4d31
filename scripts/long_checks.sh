#!/usr/bin/env bash
# Runs the checks that take too long for every change. Run them before a release, on an idle machine.
#   scripts/long_checks.sh                      all parts, some nine hours on two cores
#   scripts/long_checks.sh distributions|faults|fuzz|threads|soak ...    some of them
#   distributions   every lossless method, and the planted bugs, on a million images each
#   faults          a hundred failing calls and kills, and two hundred failing allocations, of every writing command
#   fuzz            ten million inputs for every fuzzer
#   threads         multi-threaded code under the thread sanitizer
#   soak            LAMPLIGHTER_SOAK seconds (two hours) of mixed requests in one process
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export OMP_NUM_THREADS=1

distributions() {
  scripts/setup.sh
  export LAMPLIGHTER_DISTRIBUTION_IMAGES=$((1 << 20))
  printf '%s\n' decode_test draft_drafters_test draft_lookup_test draft_windows_test |
    xargs -P 2 -I NAME build/NAME --gtest_brief=1
  build/verify_distribution_test --gtest_brief=1
}

faults() {
  scripts/setup.sh
  LAMPLIGHTER_FAULTS=200 .venv/bin/python -m pytest tests/e2e/test_faults.py
}

# Limits inputs and allocation stacks: ten million inputs of any length would take days.
fuzz() {
  ASAN_OPTIONS=malloc_context_size=1 LAMPLIGHTER_FUZZ_RUNS=10000000 LAMPLIGHTER_FUZZ_LENGTH=4096 scripts/fuzz.sh 28800
}

threads() {
  LAMPLIGHTER_TARGET="base_test pipeline_test decode_test soak" scripts/setup.sh tsan
  for program in base_test pipeline_test decode_test; do
    "build-tsan/$program" --gtest_filter='Worker.*:*/SlotsTest.*:SinksTest.*' --gtest_brief=1
  done
  build-tsan/soak models/demo/bundle 300
}

soak() {
  scripts/setup.sh
  build/soak models/demo/bundle "${LAMPLIGHTER_SOAK:-7200}"
}

[ $# != 0 ] || set -- distributions faults fuzz threads soak
for part; do
  case $part in
    distributions | faults | fuzz | threads | soak) ;;
    *) echo "long_checks: error: got $part, expected distributions, faults, fuzz, threads or soak" >&2; exit 2 ;;
  esac
done
for part; do
  echo "== $part"
  "$part"
done
