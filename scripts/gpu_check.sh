#!/usr/bin/env bash
# Builds on a machine with a CUDA device and runs what needs one.
#   scripts/gpu_check.sh collect   here, after scripts/setup.sh: copies the headers and libraries of the
#                                  distribution's packages to .cache/gpu-packages, for machines without apt
#   scripts/gpu_check.sh           there: configures, builds, runs the tests named cuda_* and the benchmarks
# The machine brings CMake, Ninja, a C++ compiler, nvcc and a python3 with Torch; .cache/gpu-packages and
# .cache/sentencepiece travel with the tree. Results: the folder $OUT, default build-gpu/results.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=.cache/gpu-packages

collect() {
  local names=(nlohmann-json3-dev libcli11-dev libstb-dev zlib1g zlib1g-dev libgtest-dev libgmock-dev
    libbenchmark-dev)
  # The shared library behind libbenchmark-dev carries its version in the package's name.
  names+=("$(dpkg-query --show --showformat='${Package}\n' 'libbenchmark1*' | head -n 1)")
  rm -rf "$packages"
  mkdir -p "$packages"
  # /lib is a link to /usr/lib today, but the packages' lists may still name it.
  dpkg -L "${names[@]}" | grep -E '/include/|/cmake/|/lib/[^/]*/[^/]*\.(a|so[^/]*)$' |
    while read -r path; do
      [ -d "$path" ] || echo "$path"
    done | sort -u | tar --create --files-from=- --absolute-names --transform='s,^/\(usr/\)\?,usr/,' |
    tar --extract --directory "$packages"
  echo "gpu_check: $(du -sh "$packages" | cut -f 1) in $packages"
}

check() {
  local out=${OUT:-build-gpu/results}
  local torch
  torch=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
  mkdir -p "$out"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/device.txt"
  local prefix=
  [ -d "$packages" ] && prefix=$PWD/$packages/usr
  cmake -S . -B build-gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DLAMPLIGHTER_CUDA=ON -DTORCH_ROOT="$torch" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$out/configure.log" 2>&1 || { tail -n 20 "$out/configure.log"; exit 1; }
  ninja -C build-gpu >"$out/build.log" 2>&1 || { tail -n 40 "$out/build.log"; exit 1; }

  local status=0
  # A device that is not seen would let every test skip itself.
  python3 -c 'import torch; torch.zeros(1, device="cuda")'
  ctest --test-dir build-gpu -R '^cuda_' --output-on-failure --no-tests=error | tee "$out/ctest.log" || status=1
  if command -v compute-sanitizer >/dev/null; then
    compute-sanitizer --error-exitcode 1 build-gpu/cuda_twin_test --gtest_filter='*Attend/BFloat16:*Draw/Float' \
      >"$out/sanitizer.log" 2>&1 || { tail -n 20 "$out/sanitizer.log"; status=1; }
  fi
  local bench
  for bench in build-gpu/*_bench; do
    "$bench" --benchmark_min_time=0.1 --benchmark_out="$out/$(basename "$bench").json" --benchmark_out_format=json || status=1
  done
  [ "$status" = 0 ] && echo "gpu_check: passed; results in $out"
  return "$status"
}

case "${1:-check}" in
  collect) collect ;;
  check) check ;;
  *) echo "usage: scripts/gpu_check.sh [collect]" >&2; exit 2 ;;
esac
