"""What the decode loop feeds and samples, id by id, against the recorded layouts of Lumina-mGPT's images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import golden_engine as engine
from golden_cases import Case
from layout_models import FIRST_CODE, random_logits, write_bundle
from safetensors.torch import load_file
from torch import Tensor

KINDS = (
    "lumina_logits",
    "lantern_lumina_structure",
    "acceptance/structure",
    "families/lumina2_logits",
)

BEGIN, END, ROW_END, SIZE_BASE = 8197, 8196, 8803, 8804
PROMPT = [0, 8936, 9, 8917, 8710]
SCALE = 3.0
METHODS: tuple[dict[str, str], ...] = (
    {"method": "ar"},
    {"method": "eagle", "tree": "chain-8"},
    {"method": "eagle", "tree": "lantern-26"},
    {"method": "eagle-2"},
)


# Rows, columns and, per number of ids after the header, the forced id or -1.
Layout = tuple[int, int, list[int]]
BIG = 1500  # codes of an image that two methods are enough for


def methods(rows: int, columns: int) -> tuple[dict[str, str], ...]:
    return METHODS if rows * columns < BIG else (METHODS[0], METHODS[2])


def tables(case: Case) -> Iterator[Layout]:
    if case.kind == "acceptance/structure":
        ids = {1: -1, 2: ROW_END, 3: END}
        for grid in case.info["cases"]:
            kinds = case.long(f"kind_{grid['id']}").tolist()
            yield grid["rows"], grid["cols"], [ids[kind] for kind in kinds]
    elif case.kind == "lumina_logits":
        forced, ends = case.long("structure_forced_id"), case.long("structure_offsets").tolist()
        for number, (height, width) in enumerate(case.info["structure_grids_height_width"]):
            yield 2 * height, 2 * width, forced[ends[number] : ends[number + 1]].tolist()
    elif case.kind == "families/lumina2_logits":
        facts = case.info["token_ids"]
        ids = {facts["end_of_line"]: ROW_END, facts["eoi"]: END}
        forced, ends = case.long("structure_forced_id"), case.long("structure_offsets").tolist()
        for number, (height, width) in enumerate(case.info["structure_grids_height_width"]):
            table = forced[ends[number] : ends[number + 1]].tolist()
            yield 4 * height, 4 * width, [ids.get(id, id) for id in table]
    else:
        yield 48, 48, case.long("forced_48x48").tolist()
        start, other = 0, case.long("forced_other").tolist()
        for rows, columns in case.info["forced_tables"][1]["latents"]:
            length = rows * (columns + 1) + 3
            yield rows, columns, other[start : start + length]
            start += length
        assert start == len(other)


def grid_entry(rows: int, columns: int) -> dict[str, Any]:
    return {
        "width": 16 * columns, "height": 16 * rows, "rows": rows, "columns": columns,
        "before": header(rows, columns), "row_end": [ROW_END], "after": [END],
    }  # fmt: skip


def header(rows: int, columns: int) -> list[int]:
    return [BEGIN, SIZE_BASE + rows // 2, SIZE_BASE + columns // 2]


def greedy_image(table: list[int], prompts: list[list[int]], count: int) -> list[int]:
    """Ids after the header up to the last of `count` codes: forced ones from the table, codes by argmax."""
    logits = random_logits(1)
    ids: list[int] = []
    codes = 0
    while codes < count:
        forced = table[len(ids)]
        if forced >= 0:
            ids.append(forced)
            continue
        rows = []
        for prompt in prompts:
            last = (prompt + ids)[-1]
            rows.append(logits[(31 * last + 7 * (len(prompt) + len(ids) - 1)) % len(logits)])
        guided = rows[-1] + (rows[0] - rows[-1]) * SCALE
        ids.append(int(guided.argmax()) + FIRST_CODE)
        codes += 1
    return ids


def run(bundle: Path, folder: Path, runs: list[dict[str, Any]]) -> list[dict[str, Tensor]]:
    out = folder / "caches.safetensors"
    engine.run(engine.BUILD / "golden_layout", bundle, out, stdin=json.dumps(runs))
    tensors = load_file(out)
    results: list[dict[str, Tensor]] = [{} for _ in runs]
    for name, tensor in tensors.items():
        number, field = name.split(".")
        results[int(number)][field] = tensor
    return results


def assert_caches(
    what: str, found: dict[str, Tensor], prompts: list[list[int]], ids: list[int]
) -> None:
    """Every row of the caches, and the root that no cache has seen."""
    assert int(found["root"]) + FIRST_CODE == ids[-1], what
    kinds = ["", "draft_"] if "draft_cache" in found else [""]
    for sequence, prompt in enumerate(prompts):
        fed = prompt + ids
        for shift, kind in enumerate(kinds):  # a drafter's row holds the id after its features
            where = f"{what}: {kind}cache of sequence {sequence}"
            length = int(found[f"{kind}lengths"][sequence])
            # The drafter lacks the rows of the last cycle.
            assert length >= len(prompt) - 1 and (shift or length == len(fed) - 1), where
            keys, values = found[f"{kind}cache"][0, :, sequence, 0, :length].long()
            assert keys[:, 0].tolist() == fed[:length], where
            assert values[:, 0].tolist() == fed[shift : length + shift], where
            assert values[:, 1].tolist() == list(range(length)), where


def compare(
    tmp_path: Path, layouts: list[Layout], agreeing: float
) -> Iterator[tuple[Layout, str, int]]:
    """Samples every layout with every method and checks what was fed -> layout, method, passes.

    agreeing: share of contexts in which the drafter guesses like the target.
    """
    grids = [grid_entry(rows, columns) for rows, columns, _ in layouts]
    bundle = write_bundle(tmp_path / "bundle", grids, agreeing)
    runs = [
        {"width": 16 * columns, "height": 16 * rows, "ids": PROMPT, "unconditional": [],
         "cfg_scale": SCALE, "temperature": 0, **method}
        for rows, columns, _ in layouts for method in methods(rows, columns)
    ]  # fmt: skip
    results = iter(run(bundle, tmp_path, runs))
    for rows, columns, table in layouts:
        prompts = [PROMPT + header(rows, columns), header(rows, columns)]
        ids = greedy_image(table, prompts, rows * columns)
        # What the official code adds after the last code is the same for all images.
        assert table[len(ids) : len(ids) + 2] == [ROW_END, END]
        assert ids.count(ROW_END) == rows - 1 and min(ids) >= FIRST_CODE
        codes = [id - FIRST_CODE for id in ids if id != ROW_END]
        for method in methods(rows, columns):
            what, found = f"{rows}x{columns} {' '.join(method.values())}", next(results)
            assert found["codes"].tolist() == codes, f"{what}: codes"
            assert_caches(what, found, prompts, ids)
            yield (rows, columns, table), method["method"], int(found["cycles"])


def test_sequences(case: Case, tmp_path: Path) -> None:
    """Forced ids cost no pass, so an image takes as many as it has codes, or fewer."""
    for (rows, columns, _), method, passes in compare(tmp_path, list(tables(case)), 0.7):
        codes = rows * columns
        assert passes == codes if method == "ar" else passes < 0.8 * codes, (rows, columns, method)


def test_images_smaller_than_trees(tmp_path: Path) -> None:
    """Every draft is accepted, beyond the last code, too."""
    layouts = []
    for rows in range(1, 5):
        for columns in range(1, 5):
            ends = [
                ROW_END if (n + 1) % (columns + 1) == 0 else -1 for n in range(rows * (columns + 1))
            ]
            layouts.append((rows, columns, [*ends, END]))
    assert all(
        passes <= rows * columns
        for (rows, columns, _), _, passes in compare(tmp_path, layouts, 1.0)
    )
