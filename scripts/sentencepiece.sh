#!/usr/bin/env bash
# Builds SentencePiece as a static library with hidden symbols: scripts/sentencepiece.sh DIR
# DIR gets libsentencepiece.a and include/. The shared library of a distribution cannot be used: it exports flags with
# names that LibTorch uses too, and in one process the two overwrite each other's memory.
set -euo pipefail
version=0.2.1
sha256=8138cec27c2f2282f4a34d9a016e3374cd40e5c6e9cb335063db66a0a3b71fad
target=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

mkdir -p "$root/.cache"
work=$(mktemp -d "$root/.cache/sentencepiece-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
"${LAMPLIGHTER_PYTHON:-$root/.venv/bin/python}" -m pip download --quiet --no-deps --no-binary :all: --dest "$work" "sentencepiece==$version"
echo "$sha256  $work/sentencepiece-$version.tar.gz" | sha256sum --check --quiet
tar -xzf "$work/sentencepiece-$version.tar.gz" -C "$work"
source=$work/sentencepiece-$version/sentencepiece
# When memory runs out, its protobuf would count an element that was never constructed, and destroy it.
fields=$source/third_party/protobuf-lite/google/protobuf/repeated_field.h
sed -i '/^inline typename TypeHandler::Type\* RepeatedPtrFieldBase::Add($/,/^}/ {
  /^  ++rep_->allocated_size;$/d
  s/^  rep_->elements\[current_size_++\] = result;$/  ++rep_->allocated_size;\n&/
}' "$fields"
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DSPM_ENABLE_SHARED=OFF -DSPM_ENABLE_TCMALLOC=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
  -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON "${launcher[@]}"
cmake --build "$work/build" --target sentencepiece-static ${LAMPLIGHTER_JOBS:+--parallel "$LAMPLIGHTER_JOBS"}
mkdir -p "$target/include"
cp "$source/src/sentencepiece_processor.h" "$target/include/"
cp "$source/LICENSE" "$target/"
cp "$work/build/src/libsentencepiece.a" "$target/libsentencepiece.a.part"
mv "$target/libsentencepiece.a.part" "$target/libsentencepiece.a"
