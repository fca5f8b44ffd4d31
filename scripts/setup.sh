#!/usr/bin/env bash
# Installs what a fresh clone lacks, then builds: distribution packages, the Python environment (.venv),
# SentencePiece (.cache/sentencepiece), the programs (build/). Existing parts are kept.
#   scripts/setup.sh [PRESET...]      presets of CMakePresets.json to build; default: release
# Environment: LAMPLIGHTER_JOBS = compile jobs at a time; default: as many as cores and memory allow.
#              LAMPLIGHTER_TARGET = what to build, targets of Ninja; default: everything, tests included.
#              LAMPLIGHTER_CUDA = ON or OFF: build/ with CUDA kernels, from then on; default: if there are a GPU and nvcc.
# All messages go to stderr. Except for the distribution's packages, nothing is written outside this folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
exec 1>&2
source scripts/environment.sh

say() { echo "setup: $*"; }
fail() {
  echo "setup: error: $*"
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

# Writes a file by a rename: nothing half-written, and a copy of .venv that is made of hard links keeps its own.
put() { cat >"$1.part" && mv "$1.part" "$1"; }

install_all_packages() {
  command -v dpkg-query >/dev/null || return 0 # not Debian or Ubuntu: configuring names what is missing
  local wanted=(g++ cmake ninja-build ccache zlib1g-dev nlohmann-json3-dev libcli11-dev libstb-dev
    libjpeg-dev libwebp-dev libgtest-dev libgmock-dev libbenchmark-dev)
  command -v python3 >/dev/null || wanted+=(python3)
  # Debian and Ubuntu ship Python without ensurepip; other interpreters bring their own.
  python3 -c 'import ensurepip, venv' 2>/dev/null || wanted+=(python3-venv)
  # Headers of the interpreter, for the Python package.
  python3 -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null ||
    wanted+=(python3-dev)
  install_packages "${wanted[@]}"
  [[ " $* " = *" fuzz "* ]] || return 0
  install_packages clang
  install_packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
}

install_packages() {
  local have missing=() name
  have=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' 2>/dev/null)
  for name; do
    grep -qx "$name installed" <<<"$have" || missing+=("$name")
  done
  [ ${#missing[@]} = 0 ] && return 0
  say "installing packages: ${missing[*]}"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}")
  { as_root apt-get update -qq && as_root "${install[@]}"; } >.cache/apt.log 2>&1 </dev/null ||
    fail "packages are missing and could not be installed (.cache/apt.log); as root: apt-get install ${missing[*]}"
}

make_venv() {
  [ -x .venv/bin/python ] && return 0
  python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' ||
    fail "$(python3 --version) found; Python 3.11 to 3.14 is needed"
  python3 -m venv .venv
  rm -f .venv/.lamplighter # its interpreter is gone
}

fill_venv() {
  local stamp=.venv/.lamplighter
  local want
  want=$(sha256sum requirements.txt)
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && return 0
  say "installing Python packages into .venv (Torch is large: some minutes)"
  .venv/bin/python -m pip install --quiet --no-warn-script-location -r requirements.txt </dev/null
  echo "$want" | put "$stamp"
}

# The exporters, from any folder: lamplighter-export and python -m models.export.
make_exporter() {
  local site script=.venv/bin/lamplighter-export
  site=$(echo .venv/lib/python3*/site-packages)
  [ "$(cat "$site/lamplighter.pth" 2>/dev/null)" = "$root" ] && [ -x $script ] && return 0
  printf '#!/bin/sh\nexec "%s/.venv/bin/python" -m models.export "$@"\n' "$root" | put $script
  chmod +x $script
  echo "$root" | put "$site/lamplighter.pth"
}

make_sentencepiece() {
  local stamp=.cache/sentencepiece/stamp
  local want
  want=$(sha256sum scripts/sentencepiece.sh)
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && return 0
  say "building SentencePiece"
  scripts/sentencepiece.sh .cache/sentencepiece >.cache/sentencepiece.log 2>&1 ||
    { tail -n 20 .cache/sentencepiece.log; fail "SentencePiece could not be built (.cache/sentencepiece.log)"; }
  echo "$want" >"$stamp"
}

# Turns Ninja's lines into a progress bar on a terminal, else into one line; prints nothing if nothing is compiled.
progress() {
  local line said= done all bar
  while read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ [^R] ]] || continue # skips "Re-running CMake"
    done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    if [ -t 2 ]; then
      printf -v bar '%*s' $((30 * done / all)) ''
      printf '\rsetup: building [%-30s] %s/%s ' "${bar// /#}" "$done" "$all"
    elif [ -z "$said" ]; then
      say "building ($LAMPLIGHTER_JOBS jobs at a time)"
    fi
    said=1
  done
  if [ -t 2 ] && [ -n "$said" ]; then echo; fi
}

# Whether build/ gets CUDA kernels. Without them programs start a fifth faster, and the build takes minutes less.
had_cuda() { sed -n 's/^LAMPLIGHTER_CUDA:[A-Z]*=//p' build/CMakeCache.txt 2>/dev/null || true; }
wanted_cuda() {
  if [ -n "${LAMPLIGHTER_CUDA:-}" ] || [ "$(had_cuda)" = ON ]; then
    echo "${LAMPLIGHTER_CUDA:-ON}"
  elif [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
    echo AUTO
  else
    echo OFF
  fi
}

# Builds, and configures first if the build folder is new or the choices changed. Ninja notices other changes.
build() {
  local preset=$1 folder=build targets log choices=() changed=
  read -ra targets <<<"${LAMPLIGHTER_TARGET:-all}"
  if [ "$preset" = release ]; then
    choices=("-DLAMPLIGHTER_CUDA=$(wanted_cuda)")
    [ "$(wanted_cuda)" = "$(had_cuda)" ] || changed=1
  else
    folder=build-$preset
  fi
  if [ -n "$changed" ] || [ ! -f "$folder/build.ninja" ] || [ CMakePresets.json -nt "$folder/build.ninja" ]; then
    say "configuring ($preset)"
    log=.cache/configure-$preset.log
    cmake --preset "$preset" "${choices[@]}" >"$log" 2>&1 </dev/null || { cat "$log"; fail "configuring failed ($log)"; }
    touch "$folder/build.ninja"
  fi
  log=.cache/build-$preset.log
  ninja -C "$folder" -j "$LAMPLIGHTER_JOBS" "${targets[@]}" 2>&1 </dev/null | tee "$log" | progress ||
    { grep -v '^\[' "$log" | tail -n 60; fail "building failed ($log)"; }
}

if [ ! -x .venv/bin/python ]; then
  say "first run: packages, Torch (a large download) and the build take about 10 minutes on two cores, once"
fi
mkdir -p .cache
exec 9>.cache/lock
flock -n 9 || { say "waiting for another set-up in this folder"; flock 9; }
install_all_packages "$@"
make_venv
make_sentencepiece & # runs during the download of Torch
fill_venv
make_exporter
wait $!
for preset in "${@:-release}"; do
  build "$preset" 9>&-
done
