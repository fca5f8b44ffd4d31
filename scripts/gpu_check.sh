#!/usr/bin/env bash
# Tests and measures on a machine with a CUDA device, in parts with time limits.
#   scripts/gpu_check.sh           all parts, within nine minutes
#   scripts/gpu_check.sh tests     tests that need a device, and the sanitizer
#   scripts/gpu_check.sh cycles    cycles of published shapes, alone and in batches; single kernels
#   scripts/gpu_check.sh images    the demo at LlamaGen-XL's size: real acceptance and real time, batches, start-up
#   scripts/gpu_check.sh beside    PyTorch on the same weights, a compiled decoder of published shapes, image decoders
#   scripts/gpu_check.sh kernels   times of all kernels of captured cycles, by CUPTI; not among "all parts"
#   scripts/gpu_check.sh build     only configure and build (on two cores 10 to 20 minutes:
#                                  LAMPLIGHTER_GPU_SECONDS=2400)
# The programs come from .cache/gpu-programs.tar.xz of scripts/gpu_pack.sh if it exists; otherwise they are built.
# The machine needs a python3 with Torch 2.11 and, to build, CMake, Ninja, a C++ compiler and nvcc. It does not need
# tests/golden (60 MB). Results: summary.md, a log per part and JSON in build-gpu/results; if OUT names a folder, it
# gets summary.md and results.tar.gz. A failing part does not stop the others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
LAMPLIGHTER_JOBS=${LAMPLIGHTER_JOBS:-$(nproc)} # ignores free memory, because virtual machines may grow
source scripts/environment.sh
packages=.cache/gpu-packages
packed=.cache/gpu-programs.tar.xz
build="build-gpu"
out=$build/results
seconds=${LAMPLIGHTER_GPU_SECONDS:-530} # for all parts together; all but 250 of them may go to the build
device=${LAMPLIGHTER_GPU_DEVICE:-cuda}  # cpu: try the parts without a device
layers=${LAMPLIGHTER_GPU_LAYERS:-}      # layers of published shapes, for a try
size=${LAMPLIGHTER_GPU_SIZE:-XL}        # size of the enlarged demo
failed=0

# part NAME LIMIT COMMAND...: runs it for at most LIMIT seconds and the time left; output goes to NAME.log.
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

torch_folder() { python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])'; }

configure() {
  local torch prefix=
  torch=$(torch_folder)
  [ ! -d "$packages" ] || prefix=$PWD/$packages/usr
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLAMPLIGHTER_CUDA=ON -DTORCH_ROOT="$torch" \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu \
    -DCMAKE_CUDA_FLAGS=--threads=2 # both architectures at once: the largest kernel is what a build waits for
}

# Test programs that use a device; names of their cases contain Cuda.
device_tests() {
  grep -rl --include='*_test.cpp' hasCUDA tests/kernels | xargs basename --multiple --suffix=.cpp
  echo decode_test
}
benches() { grep -rl --include='*_bench.cpp' hasCUDA tests | xargs --no-run-if-empty basename --multiple --suffix=.cpp; }

# Targets to build.
programs() { echo lamplighter_cli; device_tests; benches; }

build_all() {
  part configure 60 bash "$0" configure || return 1 # a function cannot be given to `timeout`
  local names
  mapfile -t names < <(programs)
  # A test that does not compile does not stop the build of other targets.
  part build $((seconds - 250)) ninja -k 0 -j "$LAMPLIGHTER_JOBS" -C "$build" "${names[@]}" || [ -x "$build/lamplighter" ]
}

# Programs that were built elsewhere look for their bundle in the folder of their tree.
unpack() {
  local torch source
  tar --extract --xz --file "$packed" --directory "$build"
  torch=$(torch_folder)
  export LD_LIBRARY_PATH=$root/$build:$root/$build/lib:$torch/lib:$torch/../nvidia/cu13/lib
  source=$(cat "$build/source")
  [ -e "$source" ] || { mkdir -p "$(dirname "$source")" && ln -s "$root" "$source"; }
}

provide() {
  if [ -e "$packed" ]; then unpack; else build_all; fi
}

tests() {
  local name
  part check 60 "$build/lamplighter" check models/demo/bundle --device "$device" || true
  for name in $(device_tests); do
    # Distribution tests are bound by the host, so they run in shards.
    part "$name" 120 xargs -P 8 -I {} env GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX={} "$build/$name" \
      --gtest_filter='*Cuda*' --gtest_output="json:$out/$name-{}.json" <<<"$(seq 0 7)" || true
  done
  if command -v compute-sanitizer >/dev/null; then sanitize; fi
}

# bench NAME LIMIT FLAGS...: writes a table and its JSON.
bench() {
  local name=$1 limit=$2
  shift 2
  part "$name" "$limit" "$build/lamplighter" bench --device "$device" --dtype bf16 --overwrite \
    --export-json "$out/$name.json" --export-markdown "$out/$name.md" "$@" || true
}

# synthetic NAME SHAPE FLAGS...
synthetic() {
  local name=$1 shape=$2
  shift 2
  bench "synthetic-$name" 60 --synthetic "$shape" ${layers:+--layers "$layers"} --repeats 4 "$@"
}

cycles() {
  local shape name
  local trees=eagle:tree=chain-3,eagle:tree=lantern-58
  for shape in llamagen-xl-256 llamagen-xl-512 anole-512; do
    synthetic "$shape" "$shape" --methods "$trees,sjd:tree=chain-7,sjd:tree=chain-15"
  done
  # LANTERN++ has 3.63 tokens per pass on this model (Table 2 of its paper).
  synthetic lumina-768 lumina-768 --methods "$trees,sjd:tree=chain-15" --accept 2.63
  synthetic no-graph llamagen-xl-256 --methods eagle:tree=chain-3 --no-graph
  for shape in llamagen-xl-256 llamagen-xl-512; do
    synthetic "batches-$shape" "$shape" --methods sjd:tree=chain-3,sjd:tree=chain-7 --batch-sizes 4,16,64
  done
  for name in $(benches); do
    part "$name" 60 "$build/$name" --benchmark_out_format=json --benchmark_out="$out/$name.json" || true
  done
}

# kernels_of LAYERS NAME FLAGS...: where the time of a cycle goes. The program does not see that it is timed.
kernels_of() {
  local layers=$1 name=kernels-$2 library=$PWD/$build/kernel_times.so
  shift 2
  part "$name" 90 env LD_PRELOAD="$library" CUDA_INJECTION64_PATH="$library" KERNEL_TIMES="$out/$name.csv" \
    "$build/lamplighter" bench --device "$device" --dtype bf16 --repeats 2 "$@" || return 0
  part "$name-table" 20 python3 scripts/kernel_table.py "$out/$name.csv" --layers "$layers" || return 0
  { echo "Kernels of a cycle: $*" && echo && cat "$out/$name-table.log"; } >"$out/$name.md"
}

kernels() {
  local method
  part kernel_times 60 g++ -O2 -std=c++17 -shared -fPIC -I"${CUDA_HOME:-/usr/local/cuda}/include" \
    -o "$build/kernel_times.so" scripts/kernel_times.cpp -ldl || return 0
  for method in ar sjd:tree=chain-7 sjd:tree=chain-15 eagle:tree=lantern-58; do
    kernels_of "${layers:-36}" "xl-${method//[:=]/-}" --synthetic llamagen-xl-256 ${layers:+--layers "$layers"} \
      --methods "$method"
    kernels_of "${layers:-32}" "7b-${method//[:=]/-}" --synthetic anole-512 ${layers:+--layers "$layers"} \
      --methods "$method"
  done
}

# Runs this machine's Python with the packages for the enlarged demo.
python() {
  env PYTHONPATH="$root/$packages/python" LAMPLIGHTER_OPS="$root/$build/liblamplighter_ops.so" python3 "$@"
}

# Writes the demo at the size of a published model, once.
enlarged=$build/demo-$size
enlarge() {
  [ -e "$enlarged/manifest.json" ] ||
    part "enlarge-$size" 90 bash "$0" python -m models.demo.enlarge --size "$size" --out "$enlarged"
}

images() {
  enlarge || return 0
  local cool=rule=cool:nu=0:delta=4
  bench "demo-$size" 120 -m "$enlarged" -b 4 --repeats 2 --methods \
    "eagle:tree=chain-5,eagle:tree=lantern-26,eagle:tree=lantern-58,lantern++:lambda=3:tree=chain-5,lantern++:lambda=3:tree=lantern-58,sjd:tree=chain-7,sjd:tree=chain-15,sjd:tree=chain-15:$cool,refine:tree=chain-15,refine:tree=chain-15:$cool,refine:tree=chain-31:tail=keep"
  bench "batches-$size" 90 -m "$enlarged" -b 64 --batch-sizes 4,16,64 --methods ar,sjd:tree=chain-7
  part "startup-$size" 60 "$build/lamplighter" bench --startup -m "$enlarged" --device "$device" --repeats 3 \
    --export-json "$out/startup.json" --export-markdown "$out/startup.md" --overwrite || true
  # Images to look at.
  for method in ar sjd refine; do
    part "image-$method" 30 "$build/lamplighter" generate -m "$enlarged" --device "$device" --method "$method" \
      -p "a white lighthouse on the coast at dusk" -b 4 --grid "$out/$method.png" -o "$out/$method-%d.png" --overwrite || true
  done
}

beside() {
  local flags=(--device "$device" --program "$build/lamplighter")
  part decoder-llamagen 60 bash "$0" python scripts/measure_decoder.py llamagen --pixels 256 "${flags[@]}" || true
  part decoder-llamagen-512 60 bash "$0" python scripts/measure_decoder.py llamagen --pixels 512 "${flags[@]}" || true
  part peer-xl 120 python3 scripts/peer_compiled.py --shape llamagen-xl --device "$device" || true
  part peer-7b 120 python3 scripts/peer_compiled.py --shape anole --device "$device" || true
  part decoder-lumina 60 bash "$0" python scripts/measure_decoder.py lumina-mgpt --pixels 768 "${flags[@]}" || true
  enlarge || return 0
  # Tries torch.compile first, and runs without it if that fails.
  local eager=(scripts/compare_eager.py --model "$enlarged" --rounds 1 "${flags[@]}")
  part compiled 200 bash "$0" python "${eager[@]}" --compile || part eager 120 bash "$0" python "${eager[@]}" || true
}

# check PART...: stops without a device, because every test would skip itself.
check() {
  provide || return 0
  [ "$device" = cpu ] || part device 90 bash -c \
    "'$build/lamplighter' devices --json | tee '$out/devices.json' | grep '\"cuda:'" || return 0
  local name
  for name in "$@"; do "$name"; done
}

# Checks the kernels with every tensor in memory of its own. A virtual machine may not support the tool, which does
# not count as a failure.
sanitize() {
  local before=$failed test
  for test in cuda_twin_test cuda_sampling_twin_test; do
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 part "sanitizer-$test" 90 compute-sanitizer --error-exitcode 1 \
      --report-api-errors no "$build/$test" --gtest_filter='*/BFloat16*-*Linear*' && continue
    grep -qi 'not supported' "$out/sanitizer-$test.log" 2>/dev/null || continue
    failed=$before
    echo "| | (the tool does not support this machine) | |" >>"$out/parts.md"
    return
  done
}

summary() {
  {
    echo "# $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo no device)"
    printf '\nCommit %s. Acceptance in synthetic runs is scripted; times are real.\n\n' \
      "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
    printf '| part | result | seconds |\n|---|---|---|\n'
    cat "$out/parts.md"
    for table in "$out"/*.md; do
      case "$table" in */summary.md | */parts.md) ;; *) echo && cat "$table" ;; esac
    done
    for table in "$out"/decoder-*.log "$out"/peer-*.log "$out"/eager.log "$out"/compiled.log; do
      [ ! -f "$table" ] || { printf '\n```\n' && cat "$table" && printf '```\n'; }
    done
  } >"$out/summary.md"
  cat "$out/summary.md"
  [ -n "${OUT:-}" ] || return 0
  mkdir -p "$OUT"
  cp "$out/summary.md" "$OUT"
  tar --create --gzip --file "$OUT/results.tar.gz" --directory "$build" results
}

mode=${1:-all}
case "$mode" in
  programs | configure) "$mode" ;;
  python) shift && python "$@" ;;
  build | all | tests | cycles | images | beside | kernels)
    mkdir -p "$out"
    rm -rf "${out:?}"/*
    : >"$out/parts.md"
    trap summary EXIT
    case "$mode" in
      build) build_all || true ;;
      all) check tests cycles images beside ;;
      *) check "$@" ;;
    esac
    exit "$failed"
    ;;
  *)
    echo "usage: scripts/gpu_check.sh [build | tests | cycles | images | beside | kernels ...]" >&2
    exit 2
    ;;
esac
