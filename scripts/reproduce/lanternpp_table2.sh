#!/usr/bin/env bash
# The settings of LANTERN++'s table 2 (arXiv 2502.06352).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export TABLE=lanternpp_table2
export ABOUT="LANTERN++'s table 2 (arXiv 2502.06352): Lumina-mGPT-7B-768, Anole, LlamaGen-XL stage I and II, one bundle per run.
Guidance 3, temperature 1, top-k 2000, static tree of 58 nodes with its root, 10 neighbours, lambda 2 and 3.
Captions: the longest of each image of COCO's val2017 (captions_val2017.json); the paper measures speed on 100 of them
at batch 1 (LIMIT=100). Scores of the paper: -- --metrics fid,clip --resize 256 --reference val2017/ --inception-weights ... --clip-weights ...
S counts the prefill pass; the paper does not."
common="--cfg-scale 3 --temperature 1 --top-k 2000"
export ROWS="
AR                      | --method ar $common
EAGLE-1                 | --method eagle --tree lantern-58 $common
LANTERN++ k=10 lambda=2 | --method lantern++ --relax-k 10 --lambda 2 --tree lantern-58 $common
LANTERN++ k=10 lambda=3 | --method lantern++ --relax-k 10 --lambda 3 --tree lantern-58 $common
"
exec "${PYTHON:-$root/.venv/bin/python}" "$root/scripts/reproduce/rows.py" "$@"
