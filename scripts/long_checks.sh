#!/usr/bin/env bash
# What takes too long for every change; run before releases, on an idle machine.
#   scripts/long_checks.sh                      all parts, some nine hours on two cores
#   scripts/long_checks.sh laws|faults|fuzz|threads|soak ...    some of them
#   laws      every exact method, and the planted bugs, on a million pictures each
#   faults    a hundred failing calls and kills, and two hundred ends of memory, of every command that writes
#   fuzz      ten million inputs for every fuzzer
#   threads   what runs on several threads, under the thread sanitizer
#   soak      LAMPLIGHTER_SOAK seconds (two hours) of mixed requests in one process
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export OMP_NUM_THREADS=1

laws() {
  scripts/setup.sh
  export LAMPLIGHTER_LAW_PICTURES=$((1 << 20))
  printf '%s\n' loop_law_test mutation_test ngram_test lookahead_test jacobi_law_test official_window_test self_test heads_test refine_test |
    xargs -P 2 -I NAME build/NAME --gtest_brief=1
  build/judge_law_test --gtest_brief=1
}

faults() {
  scripts/setup.sh
  LAMPLIGHTER_FAULTS=200 .venv/bin/python -m pytest tests/e2e/test_faults.py
}

# Short inputs, and short stacks of allocations: ten million of any length would take days.
fuzz() {
  ASAN_OPTIONS=malloc_context_size=1 LAMPLIGHTER_FUZZ_RUNS=10000000 LAMPLIGHTER_FUZZ_LENGTH=4096 scripts/fuzz.sh 28800
}

threads() {
  LAMPLIGHTER_TARGET="worker_test slots_test sinks_test soak" scripts/setup.sh tsan
  ctest --preset tsan -R '^(worker|slots|sinks)_test$'
  build-tsan/soak models/demo/bundle 300
}

soak() {
  scripts/setup.sh
  build/soak models/demo/bundle "${LAMPLIGHTER_SOAK:-7200}"
}

[ $# != 0 ] || set -- laws faults fuzz threads soak
for part; do
  case $part in
    laws | faults | fuzz | threads | soak) ;;
    *) echo "long_checks: error: got $part, expected laws, faults, fuzz, threads or soak" >&2; exit 2 ;;
  esac
done
for part; do
  echo "== $part"
  "$part"
done
