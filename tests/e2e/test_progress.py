"""Traces, acceptance maps and previews of a run."""

from __future__ import annotations

import json
import os
import select
import threading
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

from tests.e2e.support import SIDE

TOKENS = 16


def array(path: Path) -> numpy.ndarray:  # type: ignore[type-arg]
    with Image.open(path) as image:
        return numpy.asarray(image.convert("RGB"))


def cycles_of(path: Path) -> list[dict[str, Any]]:
    """The cycles of a trace, without the line of settings before the cycles of each image."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if "settings" not in line]


def heads_of(path: Path) -> list[dict[str, Any]]:
    """The lines of settings of a trace, one for each image."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if "settings" in line]


def codes_of(path: Path) -> list[list[int]]:
    """The codes of each image, in raster order."""
    images = json.loads(path.read_text())["images"]
    return [numpy.asarray(image["codes"]).ravel().tolist() for image in images]


def path_to(node: int, parents: list[int]) -> list[int]:
    """The nodes behind the root that lead to a node."""
    return [] if node == 0 else [*path_to(parents[node], parents), node]


def test_trace(generate: Any, tmp_path: Path) -> None:
    lines = generate("-p", "a", "-b", 3, "--method", "eagle", "--tree", "lantern-26",
                 "--trace", "t.jsonl", "-o", "%d.png")  # fmt: skip
    heads = heads_of(tmp_path / "t.jsonl")
    first = heads[0]
    assert first["image"] == 0 and first["settings"]["tree"] == "lantern-26"
    assert [head["tokens_per_pass"] for head in heads] == [
        line["tokens_per_pass"] for line in lines
    ]
    with Image.open(tmp_path / "0.png") as image:
        assert json.loads(image.text["lamplighter"]) == first["settings"]
    cycles = cycles_of(tmp_path / "t.jsonl")
    for generated, line in enumerate(lines):
        own = [cycle for cycle in cycles if cycle["image"] == generated]
        assert [cycle["cycle"] for cycle in own] == list(range(line["cycles"]))
        assert sum(cycle["committed"] for cycle in own) == TOKENS - 1
        position = 1  # the prefill commits the first token
        for cycle in own:
            assert cycle["first"] == position
            position += cycle["committed"]
            assert 1 <= cycle["committed"] <= cycle["accepted"] + 1
            parts = {name: cycle["ms"][name] for name in ("draft", "score", "verify", "commit")}
            assert cycle["ms"] == {**parts, "cycle": pytest.approx(sum(parts.values()))}
        # A cycle that reached a depth accepted at least as many tokens.
        for depth, reached in enumerate(line["accepted_by_depth"]):
            assert reached == sum(cycle["accepted"] > depth for cycle in own)


TRACED = (
    ("eagle", "--tree", "chain-4"),
    ("eagle", "--tree", "lantern-26"),
    ("eagle-2",),
    ("sjd", "--tree", "chain-4"),
    ("self",),
    ("ar",),
)  # fmt: skip


@pytest.mark.parametrize("method", TRACED, ids=" ".join)
def test_trace_shows_trees_and_what_was_refused(
    generate: Any, tmp_path: Path, method: tuple[str, ...]
) -> None:
    given = ("-p", "a", "-b", 3, "--method", *method, "--save-codes")
    generate(*given, "plain.json", "-o", "p%d.png")
    generate(*given, "codes.json", "-o", "%d.png", "--trace", "t.jsonl")
    codes = codes_of(tmp_path / "codes.json")
    assert codes == codes_of(tmp_path / "plain.json")
    heads, cycles = heads_of(tmp_path / "t.jsonl"), cycles_of(tmp_path / "t.jsonl")
    counts = [numpy.asarray(head["tokens_per_pass"]).ravel().tolist() for head in heads]
    refused = 0
    for cycle in cycles:
        image, positions = cycle["image"], cycle["positions"]
        assert cycle["codes"] == [codes[image][position] for position in positions]
        assert {counts[image][position] for position in positions} == {cycle["committed"]}
        parents, tokens = cycle["tree"]["parents"], cycle["tree"]["tokens"]
        path = path_to(cycle["accepted_node"], parents)
        assert len(path) == cycle["accepted"]
        drafted = [tokens[node] for node in path]
        assert drafted[: cycle["committed"]] == cycle["codes"][: len(drafted)]
        for node in cycle["refused"]:
            assert parents[node["node"]] in (0, *path) and node["node"] not in path
            assert node["token"] == tokens[node["node"]]
            assert 0 <= node["target"] <= 1 and 0 <= node["draft"] <= 1
            # A first child is accepted with probability min(1, target / draft).
            if parents.index(parents[node["node"]]) == node["node"]:
                assert node["target"] < node["draft"] * 1.00001
            refused += 1
    assert (refused > 0) == (method != ("ar",))


def test_traces_of_methods_without_trees(generate: Any, tmp_path: Path) -> None:
    """The committed tokens of parallel rows, at their positions."""
    generate("-p", "a", "--method", "zipar", "--trace", "t.jsonl", "--save-codes", "c.json",
             "-o", "a.png")  # fmt: skip
    (codes,), cycles = codes_of(tmp_path / "c.json"), cycles_of(tmp_path / "t.jsonl")
    found = {0: codes[0]}
    for cycle in cycles:
        assert "tree" not in cycle
        found.update(zip(cycle["positions"], cycle["codes"], strict=True))
    assert found == dict(enumerate(codes))


def test_acceptance_map(generate: Any, tmp_path: Path) -> None:
    generate("-p", "a", "--method", "lantern", "--delta", 1, "--trace", "t.jsonl",
         "--acceptance-map", "map.png", "-o", "a.png")  # fmt: skip
    counts = [1]
    for cycle in cycles_of(tmp_path / "t.jsonl"):
        counts += [cycle["committed"]] * cycle["committed"]
    assert len(counts) == TOKENS and max(counts) > 1
    image = array(tmp_path / "map.png")
    assert (image[:SIDE, :SIDE] == array(tmp_path / "a.png")).all()
    colours: dict[int, set[tuple[int, ...]]] = {}
    for cell, count in enumerate(counts):
        top, left = cell // 4 * 8, SIDE + 4 + cell % 4 * 8
        block = image[top : top + 8, left : left + 8].reshape(-1, 3)
        assert (block == block[0]).all()
        colours.setdefault(count, set()).add(tuple(int(value) for value in block[0]))
    assert all(len(found) == 1 for found in colours.values())
    assert len({next(iter(found)) for found in colours.values()}) == len(colours)


def test_acceptance_map_of_several_images(generate: Any, tmp_path: Path) -> None:
    generate("-p", "a", "-b", 3, "--acceptance-map", "map.png", "-o", "%d.png")
    image = array(tmp_path / "map.png")
    assert image.shape[1] == 2 * SIDE + 4  # three pairs, one below the other: no place is empty
    below = SIDE + 12
    assert (image[below : below + SIDE, :SIDE] == array(tmp_path / "1.png")).all()


def frames(stream: bytes) -> list[numpy.ndarray]:  # type: ignore[type-arg]
    """The PNG files in a stream."""
    signature = b"\x89PNG\r\n\x1a\n"
    found = []
    for part in stream.split(signature)[1:]:
        with Image.open(BytesIO(signature + part)) as image:
            found.append(numpy.asarray(image.convert("RGB")))
    return found


@pytest.mark.parametrize("flags", [(), ("--method", "lantern", "--delta", 1)])
def test_preview_shows_rows_as_they_come(
    generate: Any, tmp_path: Path, flags: tuple[object, ...]
) -> None:
    os.mkfifo(tmp_path / "preview.png")  # a pipe, so that no frame is missed
    pipe = os.open(tmp_path / "preview.png", os.O_RDWR | os.O_NONBLOCK)
    stream = bytearray()
    done = threading.Event()

    def read() -> None:
        while select.select([pipe], [], [], 0.05)[0] or not done.is_set():
            with suppress(BlockingIOError):
                stream.extend(os.read(pipe, 1 << 16))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        generate(
            "-p", "a house", "--preview", "preview.png", "--trace", "t.jsonl", "-o", "a.png", *flags
        )
    finally:
        done.set()
        reader.join()
        os.close(pipe)
    generated = array(tmp_path / "a.png")
    shown = frames(bytes(stream))
    ends = [0]
    for cycle in cycles_of(tmp_path / "t.jsonl"):
        ends.append((cycle["first"] + cycle["committed"]) // 4)
    rows = sorted(set(ends) - {0})
    # A slow image decoder shows several rows at once; how many depends on the machine.
    assert 2 <= len(shown) <= len(rows) and rows[-1] == 4
    assert (shown[-1] == generated).all()
    seen = []
    for frame in shown[:-1]:
        assert frame.shape == generated.shape
        grey = [bool((frame[row * 8 : row * 8 + 8] == 128).all()) for row in range(4)]
        seen.append(grey.index(True))
        assert all(grey[seen[-1] :])
    assert seen == sorted(set(seen)) and set(seen) <= set(rows)


def test_preview_is_one_file(generate: Any, tmp_path: Path) -> None:
    """Two images side by side; the third takes the slot of the first."""
    generate("-p", "a", "-b", 3, "--batch-size", 2, "--preview", "p.png", "-o", "%d.png")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"p.png", "0.png", "1.png", "2.png"}
    sheet = array(tmp_path / "p.png")
    assert (sheet[:, :SIDE] == array(tmp_path / "2.png")).all()
    assert (sheet[:, -SIDE:] == array(tmp_path / "1.png")).all()
