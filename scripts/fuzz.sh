#!/usr/bin/env bash
# Fuzzes all parsers of untrusted input under address and undefined-behaviour sanitizers, after the unit tests of the
# same code.
#   scripts/fuzz.sh [SECONDS]    for each fuzzer, two at a time; default: 60
# Environment: LAMPLIGHTER_FUZZ_RUNS = limit on inputs per fuzzer; LAMPLIGHTER_FUZZ_LENGTH = limit on bytes per input;
# LAMPLIGHTER_FUZZ_SEED = seed for reproducible runs (default: random).
# Seeds are in tests/fuzz/corpus; new inputs stay in .cache/fuzz/NAME, findings are .cache/fuzz/NAME-*.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "fuzz: error: got $seconds, expected seconds, as in scripts/fuzz.sh 60" >&2; exit 2; }
scripts/setup.sh fuzz
ctest --test-dir build-fuzz --output-on-failure --no-tests=error -j 2

fuzz() {
  local name=$1 known=.cache/fuzz/$1
  mkdir -p "$known"
  # A caption may take 32 KiB, other inputs little more. Unpacking the largest image takes 2 GiB.
  "build-fuzz/${name}_fuzz" "$known" "tests/fuzz/corpus/$name" -artifact_prefix="$known-" -max_len="${LAMPLIGHTER_FUZZ_LENGTH:-40000}" \
    -max_total_time="$2" -runs="${LAMPLIGHTER_FUZZ_RUNS:--1}" -timeout=10 -rss_limit_mb=4096 -seed="${LAMPLIGHTER_FUZZ_SEED:-0}" -print_final_stats=1 \
    >"$known.log" 2>&1 || { tail -n 40 "$known.log"; echo "fuzz: $name: a finding (.cache/fuzz/$name.log)"; return 1; }
  awk -v name="$name" '/number_of_executed_units/ { n = $2 } /new_units_added/ { new = $2 }
    END { print "fuzz: " name ": " n " inputs, " new " new" }' "$known.log"
}
export -f fuzz
for file in tests/fuzz/*_fuzz.cpp; do basename "$file" _fuzz.cpp; done |
  xargs -P 2 -I NAME bash -euc 'fuzz NAME '"$seconds"
