#!/usr/bin/env bash
# Packs what a machine with a CUDA device lacks to run scripts/gpu_check.sh.
#   scripts/gpu_pack.sh            after scripts/setup.sh cuda: the programs of build-cuda, stripped, with the
#                                  libraries of the distribution that they load, as .cache/gpu-programs.tar.xz
#                                  (that machine has the same Torch), and Python packages in .cache/gpu-packages
#   scripts/gpu_pack.sh sources    to build there instead: headers and libraries of the distribution's packages
#                                  too, in .cache/gpu-packages; .cache/sentencepiece travels as well
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source scripts/environment.sh
packages=.cache/gpu-packages
packed=.cache/gpu-programs.tar.xz

# Python packages for the enlarged demo, for the Python of that machine.
python_packages() {
  local names
  mapfile -t names < <(.venv/bin/python -m pip freeze | grep -E '^(safetensors|sentencepiece|jsonschema)==')
  .venv/bin/python -m pip install --quiet --target "$packages/python" --python-version 3.12 --only-binary=:all: \
    "${names[@]}"
}

sources() {
  local names=(nlohmann-json3-dev libcli11-dev libstb-dev zlib1g zlib1g-dev libgtest-dev libgmock-dev
    libbenchmark-dev)
  # The name of the shared library's package contains its version.
  names+=("$(dpkg-query --show --showformat='${Package}\n' 'libbenchmark1*' | head -n 1)")
  # Package lists may name /lib, which is a link to /usr/lib. Links become files.
  dpkg -L "${names[@]}" | grep -E '/include/|/cmake/|/lib/[^/]*/[^/]*\.(a|so[^/]*)$' |
    while read -r path; do
      [ -d "$path" ] || echo "$path"
    done | sort -u |
    tar --create --dereference --hard-dereference --files-from=- --absolute-names \
      --transform='s,^/\(usr/\)\?,usr/,' | tar --extract --directory "$packages"
}

programs() {
  local names library
  mapfile -t names < <(scripts/gpu_check.sh programs)
  ninja -C build-cuda "${names[@]}"
  folder=$(mktemp --directory)
  trap 'rm -rf "$folder"' EXIT
  mkdir "$folder/lib"
  pwd >"$folder/source"
  for name in lamplighter lamplighter-engine liblamplighter_ops.so "${names[@]:1}"; do
    strip --strip-unneeded -o "$folder/$name" "build-cuda/$name"
    ldd "build-cuda/$name" | awk '$3 ~ "^(/usr)?/lib/" { print $3 }'
  done | sort -u | grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s|libgomp)\.so' |
    while read -r library; do cp "$library" "$folder/lib"; done
  tar --create --xz --file "$packed" --directory "$folder" .
}

rm -rf "$packages" "$packed"
mkdir -p "$packages"
case "${1:-programs}" in
  programs | sources) "${1:-programs}" ;;
  *)
    echo "usage: scripts/gpu_pack.sh [sources]" >&2
    exit 2
    ;;
esac
python_packages
du --summarize --human-readable --total .cache/gpu-* | sed 's/^/gpu_pack: /'
