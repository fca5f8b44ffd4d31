#!/usr/bin/env bash
# Builds on a machine with a CUDA device, runs what needs one, and measures, within nine minutes.
#   scripts/gpu_check.sh collect   here, after scripts/setup.sh: copies the headers and libraries of the
#                                  distribution's packages to .cache/gpu-packages, for machines without them
#   scripts/gpu_check.sh           there: configure, build, tests of CUDA, costs of cycles, costs of kernels
#   scripts/gpu_check.sh build     there or here: configure and build alone (on two cores 10 to 20 minutes:
#                                  LAMPLIGHTER_GPU_SECONDS=2400)
# The machine brings CMake, Ninja, a C++ compiler, nvcc and a python3 with Torch 2.11; .cache/gpu-packages and
# .cache/sentencepiece (10 MB) travel with the tree, which can do without tests/golden (60 MB). Results:
# summary.md, a log per part and JSON in build-gpu/results; where OUT names a folder, summary.md and all of
# them as results.tar.gz are put there. Every part has a time limit; what fails does not keep the others from
# running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
LAMPLIGHTER_JOBS=${LAMPLIGHTER_JOBS:-$(nproc)} # free memory is no bound: virtual machines may grow
source scripts/environment.sh
packages=.cache/gpu-packages
build="build-gpu"
out=$build/results
seconds=${LAMPLIGHTER_GPU_SECONDS:-530} # for all parts together; all but 250 of them may go to the build
shapes=(llamagen-xl-256 llamagen-xl-512 anole-512 lumina-768)
failed=0

collect() {
  local names=(nlohmann-json3-dev libcli11-dev libstb-dev zlib1g zlib1g-dev libgtest-dev libgmock-dev
    libbenchmark-dev)
  # The shared library behind libbenchmark-dev carries its version in the package's name.
  names+=("$(dpkg-query --show --showformat='${Package}\n' 'libbenchmark1*' | head -n 1)")
  rm -rf "$packages"
  mkdir -p "$packages"
  # /lib is a link to /usr/lib today, but the packages' lists may still name it. Links become files.
  dpkg -L "${names[@]}" | grep -E '/include/|/cmake/|/lib/[^/]*/[^/]*\.(a|so[^/]*)$' |
    while read -r path; do
      [ -d "$path" ] || echo "$path"
    done | sort -u |
    tar --create --dereference --hard-dereference --files-from=- --absolute-names \
      --transform='s,^/\(usr/\)\?,usr/,' | tar --extract --directory "$packages"
  # What makes the enlarged demo, for the Python of that machine.
  mapfile -t names < <(.venv/bin/python -m pip freeze | grep -E '^(safetensors|sentencepiece|jsonschema)==')
  .venv/bin/python -m pip install --quiet --target "$packages/python" --python-version 3.12 --only-binary=:all: \
    "${names[@]}"
  echo "gpu_check: $(du -sh "$packages" | cut -f 1) in $packages"
}

# part NAME LIMIT COMMAND...: runs it for at most LIMIT seconds and what is left of all; output to NAME.log.
part() {
  local name=$1 limit=$2 left=$((seconds - SECONDS)) begin=$SECONDS code=0
  shift 2
  [ "$left" -lt "$limit" ] && limit=$left
  if [ "$limit" -lt 5 ]; then
    code="no time left"
  else
    timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1 || code=$?
    [ "$code" = 124 ] && code="out of time"
  fi
  if [ "$code" = 0 ]; then
    echo "| $name | passed | $((SECONDS - begin)) |" >>"$out/parts.md"
    return 0
  fi
  failed=1
  echo "| $name | FAILED ($code) | $((SECONDS - begin)) |" >>"$out/parts.md"
  echo "gpu_check: $name: $code" >&2
  [ ! -f "$out/$name.log" ] || tail -n 15 "$out/$name.log" >&2
  return 1
}

configure() {
  local torch prefix=
  torch=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
  [ ! -d "$packages" ] || prefix=$PWD/$packages/usr
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLAMPLIGHTER_CUDA=ON -DTORCH_ROOT="$torch" \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu \
    -DCMAKE_CUDA_FLAGS=--threads=2 # both architectures at once: the largest kernel is what a build waits for
}

# Programs of the tests that use a device, wherever they are; such cases have Cuda in their names.
device_tests() { grep -rl --include='*_test.cpp' hasCUDA tests | xargs basename --multiple --suffix=.cpp; }
benches() { grep -rl --include='*_bench.cpp' hasCUDA tests | xargs --no-run-if-empty basename --multiple --suffix=.cpp; }

build_all() {
  part configure 60 bash "$0" configure || return 1 # a function cannot be given to `timeout`
  local names
  mapfile -t names < <(echo lamplighter_cli; device_tests; benches)
  # One test that does not compile keeps neither the others nor the program from being built.
  part build $((seconds - 250)) ninja -k 0 -j "$LAMPLIGHTER_JOBS" -C "$build" "${names[@]}" || [ -x "$build/lamplighter" ]
}

measure() {
  local shape=$1 name=synthetic-$1
  shift
  [ $# = 0 ] || name+=$(printf '%s' "$@")
  part "$name" 60 "$build/lamplighter" bench --synthetic "$shape" --device cuda --dtype bf16 \
    --tree chain-3,chain-15,lantern-58 "$@" --export-json "$out/$name.json" --export-markdown "$out/$name.md" || true
}

# Real acceptance and real time in one run: the demo at a published model's size.
measure_enlarged() {
  local bundle=$build/demo-$1
  part "enlarge-$1" 90 env PYTHONPATH="$packages/python" LAMPLIGHTER_OPS="$PWD/$build/liblamplighter_ops.so" \
    python3 -m models.demo.enlarge --size "$1" --out "$bundle" || return 0
  part "demo-$1" 90 "$build/lamplighter" bench -m "$bundle" --device cuda --dtype bf16 -b 4 \
    --methods eagle:tree=chain-5,eagle:tree=lantern-26,lantern++:lambda=3:tree=chain-5,sjd:tree=chain-15,sjd:tree=chain-15:rule=cool:nu=0:delta=4,refine:tree=chain-15 \
    --export-json "$out/demo-$1.json" --export-markdown "$out/demo-$1.md" --overwrite || true
}

check() {
  build_all || return 0
  # Without a device every test would skip itself.
  part device 90 bash -c "'$build/lamplighter' devices --json | tee '$out/devices.json' | grep '\"cuda:'" || return 0
  local name shape
  part check 60 "$build/lamplighter" check models/demo/bundle --device cuda || true
  for name in $(device_tests); do
    # Laws are bound by the host, which has many cores.
    part "$name" 120 xargs -P 8 -I {} env GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX={} "$build/$name" \
      --gtest_filter='*Cuda*' --gtest_output="json:$out/$name-{}.json" <<<"$(seq 0 7)" || true
  done
  for shape in "${shapes[@]}"; do measure "$shape"; done
  measure llamagen-xl-256 --no-graph
  measure_enlarged XL
  if command -v compute-sanitizer >/dev/null; then sanitize; fi
  for name in $(benches); do
    part "$name" 60 "$build/$name" --benchmark_out_format=json --benchmark_out="$out/$name.json" || true
  done
}

# Our kernels, with every tensor in memory of its own. Virtual machines may keep the tool from the device; that
# is no failure of ours.
sanitize() {
  local before=$failed
  PYTORCH_NO_CUDA_MEMORY_CACHING=1 part sanitizer 90 compute-sanitizer --error-exitcode 1 --report-api-errors no \
    "$build/cuda_twin_test" --gtest_filter='*/BFloat16*-*Linear*' && return
  if grep -qi 'not supported' "$out/sanitizer.log" 2>/dev/null; then
    failed=$before
    echo "| | (the tool does not support this machine) | |" >>"$out/parts.md"
  fi
}

summary() {
  {
    echo "# $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo no device)"
    printf '\nCommit %s. Acceptance in synthetic runs is scripted; times are real.\n\n' \
      "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
    printf '| part | result | seconds |\n|---|---|---|\n'
    cat "$out/parts.md"
    for table in "$out"/synthetic-*.md "$out"/demo-*.md; do
      [ ! -f "$table" ] || { echo; cat "$table"; }
    done
  } >"$out/summary.md"
  cat "$out/summary.md"
  [ -n "${OUT:-}" ] || return 0
  mkdir -p "$OUT"
  cp "$out/summary.md" "$OUT"
  tar --create --gzip --file "$OUT/results.tar.gz" --directory "$build" results
}

mode=${1:-check}
case "$mode" in
  collect | configure) "$mode" ;;
  build | check)
    mkdir -p "$out"
    rm -f "$out"/*
    : >"$out/parts.md"
    trap summary EXIT
    case "$mode" in
      check) check ;;
      build) build_all || true ;;
    esac
    exit "$failed"
    ;;
  *)
    echo "usage: scripts/gpu_check.sh [collect|build]" >&2
    exit 2
    ;;
esac
