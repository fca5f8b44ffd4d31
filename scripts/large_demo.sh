#!/usr/bin/env bash
# Shows what speculation gains at a published model's size: makes the demo model as large as LlamaGen-L (once: some
# minutes, 900 MB in models/demo/work), generates images of a caption with ar and with lossless methods in turns, and
# says which method was fastest.
#   scripts/large_demo.sh [CAPTION]
# The images are on the page large_demo.html.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
caption=${1:-a white lighthouse on the coast at dusk}
bundle=models/demo/work/demo-L
LAMPLIGHTER_TARGET="lamplighter_cli lamplighter_ops" scripts/setup.sh
if [ ! -f $bundle/manifest.json ]; then
  rm -rf $bundle
  mkdir -p models/demo/work
  .venv/bin/python -m models.demo.enlarge --size L --out $bundle >&2
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
table=$folder/table.csv
rm -f large_demo.html
build/lamplighter bench -m $bundle -p "$caption" --repeats 2 --warmup 0 --export-html large_demo.html --export-csv "$table" \
  --methods sjd:tree=chain-3,sjd:tree=chain-5,refine:tree=chain-5 >/dev/null
awk -F, '
  NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
  { printf "%-20s %5.1f s an image, %.2f tokens a pass\n", $1, $column["latency_ms.mean"] / 1000, $column["step_compression.mean"] }
  $column["speedup.mean"] > best { best = $column["speedup.mean"]; name = $1 }
  END { printf "%s is %.2f times as fast as ar; the images: large_demo.html\n", name, best }' "$table"
