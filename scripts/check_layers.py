"""Checks that includes only point down the layers: a file may include files of its own folder and of lower layers.

Every include names its file by the path below the root, src or include, also from a file beside it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# From the lowest layer up. Folders on one line are equal: they may not include each other.
LAYERS = [
    ["include"],
    ["src/base"],
    ["src/image"],
    ["src/text"],
    ["src/tree", "src/acceptance"],
    ["kernels"],
    ["src/device"],
    ["src/bundle"],
    ["src/draft"],
    ["src/decode", "src/continuous"],
    ["src/measure"],
    ["src/pipeline", "src/bench"],
    ["src/batch", "src/serve"],
    ["tools"],
    ["tests/reference"],
]
RANK = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}
# Folders without Torch. `include` is for other programs. The reference, which tests compare with, shares nothing
# with the operators.
TORCH_FREE = [
    "include",
    "src/base",
    "src/image",
    "src/text",
    "src/tree",
    "src/acceptance",
    "tests/reference",
]
TORCH = re.compile(r"(torch|ATen|c10)/")
# Generated headers.
GENERATED = {
    "lamplighter/version.h",
    "batch/gallery/gallery_html.h",
    "bench/build.h",
    "bench/page/charts_js.h",
    "bench/page/page_html.h",
    "bench/page/vega_js.h",
    "bundle/synthetic/model_sources.h",
    "serve/page/continue_js.h",
    "serve/page/form_js.h",
    "serve/page/history_js.h",
    "serve/page/image_js.h",
    "serve/page/page_css.h",
    "serve/page/page_html.h",
    "serve/page/page_js.h",
    "serve/page/region_js.h",
    "serve/page/server_js.h",
    "tools/launcher_texts.h",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path: str) -> str | None:
    """The layer folder that holds a path relative to the root."""
    return next((f for f in RANK if path.startswith(f + "/")), None)


def resolve(name: str) -> str | None:
    """The file of this repository an include names, relative to the root; None when it is not ours."""
    for base in (ROOT, ROOT / "src", ROOT / "include"):
        if (base / name).is_file():
            return (base / name).resolve().relative_to(ROOT).as_posix()
    return None


def check(source: Path) -> list[str]:
    path = source.relative_to(ROOT).as_posix()
    own = None if source.stem.endswith("_test") else folder_of(path)
    if own is None and not path.startswith("tests/"):
        return [f"{path}: lies in no layer; add its folder to scripts/check_layers.py"]
    problems = []
    for kind, name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        if TORCH.match(name) and own in TORCH_FREE:
            problems.append(f"{path}: includes {name}, but {own} does without Torch")
        if name in ("torch/torch.h", "torch/script.h", "ATen/ATen.h"):
            problems.append(
                f"{path}: includes {name}; take the thin headers (ATen/core/Tensor.h, ATen/ops/...)"
            )
        target = resolve(name)
        if target is None and kind == '"' and name not in GENERATED:
            problems.append(f"{path}: no file {name} below the root, src or include")
        if target is None or own is None:
            continue
        other = folder_of(target)
        if other is None:
            problems.append(f"{path}: includes {target}, which lies in no layer")
        elif other != own and (
            RANK[other] >= RANK[own] or own in TORCH_FREE and other not in TORCH_FREE
        ):
            problems.append(f"{path}: includes {target}: {own} may not depend on {other}")
    return problems


def main() -> int:
    files = [
        p
        for top in ("include", "src", "kernels", "tools", "tests")
        for p in sorted((ROOT / top).rglob("*"))
        if p.suffix in {".h", ".cpp", ".cu", ".cuh"}
    ]
    problems = [problem for path in files for problem in check(path)]
    for problem in problems:
        print(problem)
    print(f"layers: {len(files)} files, {len(problems)} problems")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
