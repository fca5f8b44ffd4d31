#!/usr/bin/env bash
# Runs a caption set on all GPUs of a machine: one process each, LOCAL_RANK picks the device.
#   scripts/launch/torchrun.sh 8 captions_val2017.json out --select longest
# Processes without a shared folder can share the captions: add `--queue HOST:29400` on every machine.
set -euo pipefail
processes=${1:?number of processes} captions=${2:?caption file} out=${3:?folder of the run}
shift 3
torchrun --no-python --nproc-per-node "$processes" lamplighter batch "$captions" -o "$out" "$@"
lamplighter batch --merge "$out"
