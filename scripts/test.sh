#!/usr/bin/env bash
# Sets up what is missing, then runs the tests.
#   scripts/test.sh               all of them
#   scripts/test.sh golden        recorded results of the official programs only; LAMPLIGHTER_GOLDEN = their folder
#   scripts/test.sh SELECTION...  folders of C++ tests (a ctest pattern), Python test files or folders
# If nvcc is found, builds with and without CUDA kernels, and tests the operators of both builds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source scripts/environment.sh
export OMP_NUM_THREADS=1
export PYTHONWARNINGS="ignore:builtin type:DeprecationWarning" # of SentencePiece's bindings, at exit

status=0
run() { "$@" || status=1; }
run_ctest() {
  local folder=$1
  shift
  run ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$LAMPLIGHTER_JOBS" "$@"
}
run_pytest() { run .venv/bin/python -m pytest --durations 10 "$@"; }

if [ $# = 0 ]; then
  scripts/setup.sh
  run_ctest build
  if command -v "${CUDACXX:-nvcc}" >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
    other=cuda
    [ -z "$(build/lamplighter --version | grep "CUDA kernels for")" ] || other=cpu
    LAMPLIGHTER_TARGET=kernel_tests scripts/setup.sh "$other"
    run_ctest "build-$other" -L kernels
  fi
  # Three parts on two cores: the tests of the server wait more than they compute.
  background() {
    local name=$1
    shift
    .venv/bin/python -m pytest --durations 10 "$@" >".cache/pytest-$name.log" 2>&1 &
  }
  background e2e tests/e2e --ignore tests/e2e/batch --ignore tests/e2e/input --ignore tests/e2e/serve
  e2e=$!
  background serve tests/e2e/serve
  serve=$!
  run_pytest tests --ignore tests/e2e
  run_pytest tests/e2e/batch tests/e2e/input
  run wait "$e2e"
  run wait "$serve"
  cat .cache/pytest-e2e.log .cache/pytest-serve.log
else
  scripts/setup.sh
  for selection; do
    if [ "$selection" = golden ]; then
      run_pytest tests/golden
    elif [ -e "${selection%%::*}" ]; then
      run_pytest "$selection"
    else
      run_ctest build -R "$selection"
    fi
  done
fi
exit "$status"
