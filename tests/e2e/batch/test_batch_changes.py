"""Caption sets that change between runs into one folder: images belong to captions, not to their numbers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.batch.sets import Batch, command, manifest
from tests.e2e.support import Cli


class Folder:
    """Runs sets of captions into one folder."""

    def __init__(self, lamplighter: Path, bundle: Path, folder: Path) -> None:
        self.lamplighter, self.bundle, self.folder = lamplighter, bundle, folder
        self.out = folder / "out"

    def run(self, captions: list[Any], *flags: object) -> subprocess.CompletedProcess[str]:
        path = self.folder / "captions.json"
        path.write_text(json.dumps(captions))
        return subprocess.run(
            command(self.lamplighter, self.bundle, path, self.out, *flags),
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def generate(self, captions: list[Any], *flags: object) -> None:
        result = self.run(captions, *flags)
        assert result.returncode == 0, result.stderr

    def captions(self) -> dict[str, str]:
        """The caption in the metadata of every image by its name, checked against the manifest."""
        found = {}
        for path in sorted((self.out / "images").iterdir()):
            with Image.open(path) as image:
                found[path.name] = json.loads(image.text["lamplighter"])["prompt"]
        records = {Path(record["file"]).name: record["caption"] for record in self.records()}
        assert records == found
        return found

    def records(self) -> list[dict[str, Any]]:
        return manifest(self.out)

    def bytes_of(self, name: str) -> bytes:
        return (self.out / "images" / name).read_bytes()


@pytest.fixture
def folder(lamplighter: Path, drafter_bundle: Path, tmp_path: Path) -> Folder:
    return Folder(lamplighter, drafter_bundle, tmp_path)


def test_a_caption_in_front_moves_the_others(folder: Folder) -> None:
    folder.generate(["a boat", "a tree"])
    boat, tree = folder.bytes_of("00000.png"), folder.bytes_of("00001.png")
    refused = folder.run(["a house", "a boat", "a tree"])
    assert refused.returncode == 2 and "captions_sha256" in refused.stderr
    folder.generate(["a house", "a boat", "a tree"], "--force-config")
    assert folder.captions() == {
        "00000.png": "a house",
        "00001.png": "a boat",
        "00002.png": "a tree",
    }
    assert (folder.bytes_of("00001.png"), folder.bytes_of("00002.png")) == (boat, tree)
    assert json.loads((folder.out / "captions.json").read_text()) == ["a house", "a boat", "a tree"]
    assert [record["index"] for record in folder.records()] == [0, 1, 2]
    assert [record["seed"] for record in folder.records()] == [42, 42, 43]
    before = {path: path.stat().st_mtime_ns for path in folder.out.rglob("*.*")}
    folder.generate(["a house", "a boat", "a tree"])
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_edited_removed_and_swapped_captions(folder: Folder) -> None:
    folder.generate(["a", "b", "c", "d"])
    kept = {letter: folder.bytes_of(f"0000{i}.png") for i, letter in enumerate("abcd")}
    folder.generate(["d", "B", "a"], "--force-config")
    assert folder.captions() == {"00000.png": "d", "00001.png": "B", "00002.png": "a"}
    assert folder.bytes_of("00000.png") == kept["d"]
    assert folder.bytes_of("00002.png") == kept["a"]
    replaced = sorted(path.read_bytes() for path in folder.out.glob("replaced/1/images/*"))
    assert replaced == sorted([kept["b"], kept["c"]])


def test_equal_captions_are_counted(folder: Folder) -> None:
    folder.generate(["a", "a", "b"])
    folder.generate(["b", "a", "a", "a"], "--force-config")
    assert list(folder.captions().values()) == ["b", "a", "a", "a"]
    assert len({folder.bytes_of(f"0000{index}.png") for index in (1, 2, 3)}) == 3


def test_ids_and_own_settings_belong_to_captions(folder: Folder) -> None:
    folder.generate([{"prompt": "a", "id": "x", "tag": 1}, {"prompt": "b", "id": "y", "seed": 5}])
    folder.generate(
        [{"prompt": "a", "id": "z"}, {"prompt": "b", "id": "y", "seed": 6}], "--force-config"
    )
    assert [record["seed"] for record in folder.records()] == [42, 6]
    assert [record["id"] for record in folder.records()] == ["z", "y"]
    # Other fields change the record alone.
    before = folder.bytes_of("00000.png")
    folder.generate([{"prompt": "a", "id": "z", "tag": 2}, {"prompt": "b", "id": "y", "seed": 6}])
    assert folder.bytes_of("00000.png") == before
    assert folder.records()[0]["fields"]["tag"] == 2


def test_layouts_follow(folder: Folder) -> None:
    lines = [{"prompt": f"a {word}", "id": word} for word in ("boat", "tree", "house")]
    flags = ("--layout", "geneval", "-b", 2)
    folder.generate(lines[:2], *flags)
    folder.generate([lines[2], *lines[:2]], *flags, "--force-config")
    for index, line in enumerate([lines[2], *lines[:2]]):
        place = folder.out / "geneval" / f"{index:05d}"
        assert json.loads((place / "metadata.jsonl").read_text()) == line
        for sample in sorted((place / "samples").iterdir()):
            with Image.open(sample) as image:
                assert json.loads(image.text["lamplighter"])["prompt"] == line["prompt"]


def test_extensions_need_no_force(folder: Folder) -> None:
    captions = ["a", "b", "c", "d"]
    folder.generate(captions[:3], "--limit", 2)
    first = folder.bytes_of("00000.png")
    folder.generate(captions[:3], "--limit", 3)
    folder.generate(captions)  # appended, without a limit
    assert list(folder.captions().values()) == captions
    assert [record["seed"] for record in folder.records()] == [42, 43, 44, 45]
    folder.generate(captions, "--seed", 100)
    names = folder.captions()
    assert len(names) == 8 and names["00003_103.png"] == "d"
    assert folder.bytes_of("00000.png") == first
    folder.generate(captions, "--seed", 100)
    folder.generate(captions)
    assert len(folder.captions()) == 8
    folder.generate(captions, "-b", 2)
    assert len(folder.captions()) == 12
    assert folder.bytes_of("00000_0.png") == first
    smaller = folder.run(captions, "-b", 2, "--limit", 1)
    assert smaller.returncode == 2 and "limit (null, now 1)" in smaller.stderr


def test_a_second_seed_is_refused_where_a_layout_holds_one(folder: Folder) -> None:
    folder.generate(["a"], "--layout", "geneval")
    refused = folder.run(["a"], "--layout", "geneval", "--seed", 7)
    assert refused.returncode == 2 and "layout geneval holds one seed" in refused.stderr


def test_shards_move_images_once(folder: Folder) -> None:
    for shard in ("0/2", "1/2"):
        folder.generate(["a", "b", "c"], "--shard", shard)
    kept = {folder.bytes_of(f"0000{index}.png") for index in range(3)}
    for shard in ("1/2", "0/2"):
        folder.generate(["new", "a", "b", "c"], "--shard", shard, "--force-config")
    assert list(folder.captions().values()) == ["new", "a", "b", "c"]
    assert {folder.bytes_of(f"0000{index}.png") for index in (1, 2, 3)} == kept


def test_moves_of_a_killed_process_are_completed(folder: Folder) -> None:
    """A crash after the new manifest leaves the files in .tmp/moved."""
    folder.generate(["a", "b"])
    a = folder.bytes_of("00000.png")
    folder.generate(["x", "a", "b"], "--force-config")
    moved = folder.out / ".tmp/moved"
    moved.mkdir()
    (folder.out / "images/00001.png").rename(moved / "00001.png")
    (moved / "00009.png").write_bytes(b"of a process that published nothing")
    folder.generate(["x", "a", "b"])
    assert folder.bytes_of("00001.png") == a and not moved.exists()
    assert list(folder.captions().values()) == ["x", "a", "b"]


def test_status_counts_all_seeds(folder: Folder, cli: Cli, batch: Batch) -> None:
    folder.generate(["a", "b"])
    folder.generate(["a", "b"], "--seed", 7)
    assert "4 of 4 images" in cli("batch", "--status", folder.out).stdout


def test_a_second_seed_follows_its_captions(folder: Folder) -> None:
    """Its images move with their captions, and keep their own seeds in their names."""
    folder.generate(["a", "b"])
    folder.generate(["a", "b"], "--seed", 77)
    a, b = folder.bytes_of("00000_77.png"), folder.bytes_of("00001_78.png")
    folder.generate(["new", "a", "b"], "--force-config")
    refused = folder.run(["new", "a", "b"], "--seed", 77)
    assert refused.returncode == 2 and "captions_sha256" in refused.stderr
    folder.generate(["new", "a", "b"], "--seed", 77, "--force-config")
    assert folder.bytes_of("00001_77.png") == a and folder.bytes_of("00002_78.png") == b
    assert list(folder.captions().values()) == ["new", "new", "a", "a", "b", "b"]
    assert not (folder.out / "replaced").exists()


def test_seeds_have_their_own_numbers_of_images(folder: Folder) -> None:
    """Each seed is resumed with its own -b beside the other: what is there stays, what is missing is generated."""
    captions = ["a", "b"]
    seeds = {"42": ("-b", 2), "7": ("--seed", 7, "-b", 3), "1000": ("--seed", 1000)}
    for flags in seeds.values():
        folder.generate(captions, *flags)
    images = {path.name: path.read_bytes() for path in (folder.out / "images").iterdir()}
    assert len(images) == 4 + 6 + 2
    for lost in ("00001_0.png", "00001_1_11.png", "00000_1000.png"):
        (folder.out / "images" / lost).unlink()
    times = {path: path.stat().st_mtime_ns for path in (folder.out / "images").iterdir()}
    for flags in (seeds["42"], seeds["1000"], seeds["7"], seeds["42"]):
        folder.generate(captions, *flags)
    assert {path.name: path.read_bytes() for path in (folder.out / "images").iterdir()} == images
    assert {path: path.stat().st_mtime_ns for path in times} == times
    folder.generate(captions, "--seed", 7, "-b", 4)
    more = [path.read_bytes() for path in (folder.out / "images").iterdir()]
    assert set(more) > set(images.values()) and len(more) == len(images) + 2
    assert len(folder.captions()) == len(more) and not (folder.out / "replaced").exists()


def test_a_seed_whose_names_are_taken(folder: Folder) -> None:
    """00000_2.png is the third image of the first seed."""
    folder.generate(["a"], "-b", 3)
    names = folder.captions()
    refused = folder.run(["a"], "--seed", 2)
    assert refused.returncode == 2 and folder.captions() == names
    assert "00000_2.png is an image of another seed, expected another seed, or" in refused.stderr
