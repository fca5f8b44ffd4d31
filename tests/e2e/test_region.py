"""`generate --from --region`: a part of an image is generated anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import CAPTION, Cli, Refused, codes, pixels, texts

SIDE = 16  # tokens of a row of the demo, and pixels of a token
REGION = "96,80,64,48"  # tokens 6 .. 9 of the rows 5 .. 7


def inside(index: int) -> bool:
    row, column = divmod(index, SIDE)
    return 5 <= row < 8 and 6 <= column < 10


def kept_by_redraw(index: int) -> bool:
    row, column = divmod(index, SIDE)
    return row < 5 or (row < 8 and column < 6)


@pytest.mark.parametrize("method", ["ar", "eagle-2", "flash", "refine", "sjd", "ngram", "self"])
def test_a_part_of_a_greedy_image_is_its_own(
    ran: Cli, demo_bundle: Path, saved: Path, tmp_path: Path, method: str
) -> None:
    words = ("-p", CAPTION, "--temperature", 0, "--method", method, "--save-codes", "again.json")
    ran(
        "generate",
        *words,
        "--from",
        saved,
        "--region",
        REGION,
        "-o",
        "again.png",
        model=demo_bundle,
    )
    assert codes(tmp_path / "again.json") == codes(saved)
    assert pixels(tmp_path / "again.png") == pixels(tmp_path / "boat.png")
    recorded: dict[str, Any] = json.loads(texts(tmp_path / "again.png")["lamplighter"])
    assert recorded["kept_tokens"] == SIDE * SIDE - 12 and recorded["tokens"] == 12
    if method == "ar":  # a pass over what is kept for each of three rows, and what is not drafted
        assert recorded["target_passes"] == 12


def test_the_rest_is_kept_or_redrawn(
    ran: Cli, demo_bundle: Path, saved: Path, tmp_path: Path
) -> None:
    words = ("-p", "a blue house in the snow", "--from", saved, "--save-codes", "new.json")
    part = ("--region", "100,81,58,40")  # touches the tokens of REGION
    result = ran("generate", *words, *part, "-o", "keep.png", "--trace", "t.jsonl",
                 "--growth", "g.png", model=demo_bundle)  # fmt: skip
    assert f"note: --region: got 100,81,58,40, whole tokens are {REGION}" in result.stderr
    (first,), (new,) = codes(saved), codes(tmp_path / "new.json")
    assert all(inside(i) for i in range(SIDE * SIDE) if new[i] != first[i]) and new != first
    recorded: dict[str, Any] = json.loads(texts(tmp_path / "keep.png")["lamplighter"])
    assert recorded["region"] == [96, 80, 64, 48] and recorded["behind"] == "keep"
    assert recorded["seen"] == "above and left" and "candidates" not in recorded
    parameters = texts(tmp_path / "keep.png")["parameters"]
    assert ', Region: "96, 80, 64, 48", Behind: keep, Seen: above and left, ' in parameters
    trace = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])
    assert trace["settings"]["region"] == [96, 80, 64, 48]

    ran("generate", *words, *part, "--behind", "redraw", "--overwrite", "-o", "redraw.png",
                 model=demo_bundle)  # fmt: skip
    (redrawn,) = codes(tmp_path / "new.json")
    assert all(redrawn[i] == first[i] for i in range(SIDE * SIDE) if kept_by_redraw(i))
    # The region alone is the same: both sample it from what lies above and left, by the same numbers, up to the
    # end of its first row.
    assert redrawn[5 * SIDE + 6 : 5 * SIDE + 10] == new[5 * SIDE + 6 : 5 * SIDE + 10]
    assert redrawn[8 * SIDE :] != first[8 * SIDE :]


def test_one_of_several_candidates_is_picked(
    cli: Cli, ran: Cli, demo_bundle: Path, saved: Path, tmp_path: Path
) -> None:
    words = ("-p", "a blue house in the snow", "--from", saved, "--region", REGION)

    def generate(name: str, *arguments: object) -> dict[str, Any]:
        result = ran("generate", *words, *arguments, "-o", name, model=demo_bundle)
        assert "images together" not in result.stderr
        described: dict[str, Any] = json.loads(texts(tmp_path / name)["lamplighter"])
        return described

    best = generate("best.png", "--candidates", 5)
    scores = best["log_probabilities"]
    assert best["candidates"] == 5 and best["pick"] == "best" and len(set(scores)) == 5
    assert best["picked"] == scores.index(max(scores)) and max(scores) < 0
    # Each candidate is generated once and takes a pass for its score.
    assert best["passes_of_all"] == 5 * (best["target_passes"] + 1)
    # The batch size does not decide what they are.
    alone = generate("alone.png", "--candidates", 5, "--batch-size", 1)
    assert alone["log_probabilities"] == scores
    assert pixels(tmp_path / "alone.png") == pixels(tmp_path / "best.png")
    fewer = generate("fewer.png", "--candidates", 2)
    assert fewer["log_probabilities"] == scores[:2]
    sampled = generate("sampled.png", "--candidates", 5, "--pick", "sample")
    assert sampled["log_probabilities"] == scores and sampled["pick"] == "sample"
    # The first candidate is the image without candidates.
    generate("first.png")
    first = scores.index(max(scores)) == 0
    assert (pixels(tmp_path / "first.png") == pixels(tmp_path / "best.png")) == first
    # The same again by the settings of the image, with the codes that they do not name.
    ran("generate", "--params-from", "best.png", "--from", saved, "-o", "b.png", model=demo_bundle)
    assert pixels(tmp_path / "b.png") == pixels(tmp_path / "best.png")
    result = cli("generate", "--params-from", "best.png", "-o", "c.png", model=demo_bundle)
    assert result.returncode == 3 and "give --from CODES" in result.stderr
    # Rows in place of the region.
    rows = ("--from", saved, "--keep-rows", 5, "-o", "rows.png")
    ran("generate", "--params-from", "best.png", *rows, model=demo_bundle)
    assert "region" not in json.loads(texts(tmp_path / "rows.png")["lamplighter"])


SQUARE = {"rows": 4, "columns": 4, "codes": [1] * 16}
RECTANGLE = "expected X,Y,WIDTH,HEIGHT"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--region", "0,0,1"), "--region: got '0,0,1', " + RECTANGLE),
        (("--region", "0,0,1,1,1"), RECTANGLE),
        (("--region", "0,0,1,x"), RECTANGLE),
        (("--region", "0, 0,1,1"), RECTANGLE),
        (("--region", "0,0,1,1e1"), RECTANGLE),
        (("--region", "0,0,99999999999,1"), RECTANGLE),
        (("--region=-1,0,8,8",), "region: got -1,0,8,8, " + RECTANGLE),
        (("--region", "0,0,0,8"), "region: got 0,0,0,8, " + RECTANGLE),
        (("--region", "0,0,2147483647,8"), RECTANGLE),
        (("--region", "2147483647,0,2147483647,8"), RECTANGLE),
        (("--region", "28,0,8,8"), RECTANGLE),
        (("--region", "0,0,32,32"), "nothing of it is kept"),
        (("--region", "0,0,1,1", "--behind", "redraw"), "nothing of it is kept"),
        (("--region", "8,8,8,8", "--behind", "else"), "--behind"),
        (("--region", "8,8,8,8", "--candidates", 0), "candidates: got 0, expected 1..256"),
        (("--region", "8,8,8,8", "--candidates", 257), "expected 1..256"),
        (("--region", "8,8,8,8", "--candidates", 2, "--pick", "worst"), "--pick"),
        (("--region", "0,24,32,8", "--candidates", 2), "no token is kept behind the first new one"),
        (("--region", "8,8,8,8", "--keep-rows", 1), "--keep-rows"),
        (("--region", "8,8,8,8", "--method", "zipar"), "image rows in parallel"),
        (("--keep-rows", 1, "--candidates", 2), "--candidates: got it without a region"),
        (("--keep-rows", 1, "--behind", "keep"), "--behind: got it without a region"),
    ],
)  # fmt: skip
def test_what_is_no_region(
    refused: Refused, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    content = {"format": "lamplighter codes", "schema": 1, "images": [SQUARE]}
    (tmp_path / "codes.json").write_text(json.dumps(content))
    line = ("generate", "-p", "a", "--from", "codes.json", *arguments, "-o", "x.png")
    assert words in refused(2, *line)


def test_a_region_needs_a_whole_image(refused: Refused, tmp_path: Path) -> None:
    assert "--from" in refused(2, "generate", "-p", "a", "--region", "8,8,8,8", "-o", "x.png")
    rows = {"rows": 2, "columns": 4, "codes": [1] * 8}
    content = {"format": "lamplighter codes", "schema": 1, "images": [rows]}
    (tmp_path / "codes.json").write_text(json.dumps(content))
    line = ("generate", "-p", "a", "--from", "codes.json", "--region", "8,8,8,8", "-o", "x.png")
    assert "got 8 codes of the image, expected 16" in refused(2, *line)
