#!/usr/bin/env bash
# The settings of LANTERN's comparison on LlamaGen-XL (arXiv 2410.03355).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export TABLE=lantern_table2
export ABOUT="LANTERN's main comparison (arXiv 2410.03355): LlamaGen-XL stage I, at temperature 0 and 1.
Guidance 7.5, top-k 1000, EAGLE-2's dynamic tree of 58 drafted nodes (10 a level, 4 expansions after the first), 1000
neighbours, delta .05 and .2 at temperature 0, .1 and .4 at temperature 1. Captions: MS-COCO validation, batch 1.
Scores of the paper: -- --metrics fid,clip,pr,hpsv2 --resize 256 --reference val/ --inception-weights ... --clip-weights ...
S counts the prefill pass; the paper does not."
tree="--tree dynamic --dynamic-depth 4 --dynamic-width 10 --dynamic-nodes 58"
relaxed="--method lantern --children top --relax-k 1000 $tree"
common="--cfg-scale 7.5 --top-k 1000"
export ROWS="
AR T=0                         | --method ar --temperature 0 $common
EAGLE-2 T=0                    | --method eagle-2 $tree --temperature 0 $common
LANTERN k=1000 delta=0.05 T=0  | $relaxed --delta 0.05 --temperature 0 $common
LANTERN k=1000 delta=0.2 T=0   | $relaxed --delta 0.2 --temperature 0 $common
AR T=1                         | --method ar --temperature 1 $common
EAGLE-2 T=1                    | --method eagle-2 $tree --temperature 1 $common
LANTERN k=1000 delta=0.1 T=1   | $relaxed --delta 0.1 --temperature 1 $common
LANTERN k=1000 delta=0.4 T=1   | $relaxed --delta 0.4 --temperature 1 $common
"
exec "${PYTHON:-$root/.venv/bin/python}" "$root/scripts/reproduce/rows.py" "$@"
