"""Notes about words that a bundle does not know, and about captions that are too long."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.support import Cli, edit_manifest

VOCABULARY = {
    "kinds": {
        "subject": {"boat": ["boat", "sail boat"], "tree": ["tree"]},
        "colour": {"red": ["red", "crimson"], "none": []},
    },
    "subject": "subject",
    "other": ["a", "and"],
    "example": "a red boat",
}


@pytest.fixture
def landscapes(tiny_bundle: Path, tmp_path: Path) -> Path:
    """The tiny bundle with a small vocabulary in its manifest."""
    folder = tmp_path / "landscapes"
    shutil.copytree(tiny_bundle, folder)
    edit_manifest(folder, lambda manifest: manifest["prompt"].update(vocabulary=VOCABULARY))
    return folder


def notes(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("note: ")]


def test_words_that_a_bundle_does_not_know(ran: Cli, landscapes: Path) -> None:
    result = ran(
        "generate", "-p", "a crimson sail boat", "-p", "two zebras and a zebra", "-p", "red zebra boat",
        "-b", 2, "-o", "x/", model=landscapes,
    )  # fmt: skip
    nothing, partly = notes(result.stderr)
    name = json.loads((landscapes / "manifest.json").read_text())["name"]
    assert nothing.startswith(
        f"note: prompt 2: {name} finds no subject that it can generate, and does not know: two, zebras, zebra; "
    )
    assert partly.startswith(f"note: prompt 3: {name} does not know: zebra; ")
    assert all(
        'try "a red boat"' in line and "lamplighter inspect" in line for line in (nothing, partly)
    )


def test_notes_of_many_captions_are_few(cli: Cli, landscapes: Path, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("".join(f"zebra {number}\n" for number in range(9)))
    result = cli("generate", "--prompt-file", "p.txt", "-o", "x/", model=landscapes)
    assert len(notes(result.stderr)) == 4 and "on 6 more captions" in notes(result.stderr)[-1]
    quiet = cli("generate", "-p", "zebra", "-q", "-o", "y.png", model=landscapes)
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_a_caption_set_has_one_note(ran: Cli, landscapes: Path, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("a red boat\na zebra\nred\na tree\n")
    result = ran("batch", "c.txt", "-o", "out", model=landscapes)
    assert [line[:24] for line in notes(result.stderr)] == ["note: 2 of 4 captions wi"]


def test_the_vocabulary_of_a_bundle_is_listed(cli: Cli, landscapes: Path) -> None:
    text = cli("inspect", model=landscapes).stdout
    assert "knows subject" in text and "boat, tree" in text and "a red boat" in text
    listed = json.loads(cli("inspect", "--json", model=landscapes).stdout)
    assert listed["manifest"]["prompt"]["vocabulary"] == VOCABULARY


def test_a_caption_that_is_too_long_is_cut_and_says_so(
    cli: Cli, ran: Cli, tiny_bundle: Path, tmp_path: Path
) -> None:
    words = [f"word{number}" for number in range(200)]
    (tmp_path / "c.txt").write_text("a tree\n" + " ".join(words) + "\n")
    result = ran("generate", "--prompt-file", "c.txt", "--json", "-o", "x/")
    [note] = notes(result.stderr)
    assert note.startswith("note: c.txt line 2: the caption is longer than the 120 tokens that ")
    stop = re.search(r": reading stops at '(word\d+) (word\d+) [^']*\.\.\.'$", note)
    assert stop and int(stop[2][4:]) == int(stop[1][4:]) + 1
    whole, cut = (json.loads(line) for line in result.stdout.splitlines())
    assert "cut" not in whole
    assert cut["cut"] == " ".join(words[int(stop[1][4:]) :])  # whole words, to the end
    with Image.open(tmp_path / "x" / "0001.png") as image:
        assert json.loads(image.info["lamplighter"])["cut"] == cut["cut"]
    batch = cli("batch", "c.txt", "-o", "out")
    assert "note: images whose captions are longer than the bundle reads: 1;" in batch.stderr
    records = [
        json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()
    ]
    assert [record.get("cut") for record in records] == [None, cut["cut"]]
    assert cli("batch", "c.txt", "-o", "out").returncode == 0  # the manifest is read again
