"""Caption sets: resuming, shards, layouts, and the content of a run's folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.batch.sets import ITEMS, Batch, assert_same, command, manifest
from tests.e2e.support import Cli, Refused


def test_a_run_writes_images_and_their_records(whole: Path, captions: Path) -> None:
    records = manifest(whole)
    assert [record["index"] for record in records] == list(range(ITEMS))
    texts = [each["caption"] for each in json.loads(captions.read_text())["annotations"]]
    assert [record["caption"] for record in records] == texts
    assert [record["seed"] for record in records] == list(range(42, 42 + ITEMS))
    for record in records:
        content = (whole / record["file"]).read_bytes()
        assert record["sha256"] == hashlib.sha256(content).hexdigest()
        assert record["bytes"] == len(content)
        assert sum(record["committed"]) + 1 == record["tokens"] == 16
    assert json.loads((whole / "captions.json").read_text()) == texts
    rows = [json.loads(line) for line in (whole / "metadata.jsonl").read_text().splitlines()]
    assert [(row["file_name"], row["text"]) for row in rows] == [
        (record["file"], record["caption"]) for record in records
    ]
    assert "caption 0 of" in (whole / "index.html").read_text()
    assert json.loads((whole / "run.json").read_text())["configurations"][0]["seed"] == 42


def test_images_equal_those_of_generate(
    whole: Path, ran: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    record = manifest(whole)[7]
    ran(
        "generate",
        "-m",
        drafter_bundle,
        "-p",
        record["caption"],
        "-s",
        record["seed"],
        "-o",
        tmp_path / "a.png",
    )
    assert (tmp_path / "a.png").read_bytes() == (whole / record["file"]).read_bytes()


def test_a_finished_run_does_not_change(whole: Path, batch: Batch) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.*") if path.is_file()}
    assert batch(whole).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_missing_and_foreign_images_are_generated_again(
    batch: Batch, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    images = sorted((out / "images").iterdir())
    images[0].unlink()
    images[1].write_bytes(b"")
    other = bytearray(images[2].read_bytes())
    other[100] ^= 1
    images[2].write_bytes(other)
    assert batch(out, "--verify").returncode == 0
    for image in images[:3]:
        assert image.read_bytes() == (whole / "images" / image.name).read_bytes()


def test_another_configuration_is_refused(batch: Batch, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    result = batch(out, "--seed", 43, "--top-k", 7)
    assert result.returncode == 2
    assert "seed (42, now 43)" in result.stderr and "top_k (null, now 7)" in result.stderr
    for name in ("a.png", "b.png"):
        assert not (out / name).exists()
    (out / "images" / "00003.png").unlink()
    assert batch(out, "--seed", 43, "--force-config").returncode == 0
    configurations = json.loads((out / "run.json").read_text())["configurations"]
    assert [each["seed"] for each in configurations] == [42, 43]


def test_two_processes_never_share_a_part(
    lamplighter: Path, drafter_bundle: Path, captions: Path, batch: Batch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = subprocess.Popen(
        command(lamplighter, drafter_bundle, captions, out, "-b", 200), stdout=subprocess.DEVNULL
    )
    try:
        while not list(out.glob("images/*")):
            time.sleep(0.02)
        for flags in ([], ["--shard", "0/2"]):
            refused = batch(out, "-b", 200, *flags)
            assert refused.returncode == 7 and "another process" in refused.stderr
    finally:
        first.kill()
        first.wait()
    # A dead process holds no lock.
    assert batch(out, "-b", 200, "--shard", "3/4000").returncode == 0


def test_a_line_a_minute_without_a_terminal(
    lamplighter: Path, drafter_bundle: Path, captions: Path, build_dir: Path, tmp_path: Path
) -> None:
    """The clock runs 60 times faster."""
    call = command(lamplighter, drafter_bundle, captions, tmp_path / "out", "-b", 20)
    call.remove("-q")
    fast = {"LD_PRELOAD": str(build_dir / "libfaults.so"), "FAULT": "clock_gettime:1+:fast"}
    begin = time.monotonic()
    result = subprocess.run(
        call, capture_output=True, text=True, timeout=300, env={**os.environ, **fast}
    )
    seconds = time.monotonic() - begin
    assert result.returncode == 0
    lines = re.findall(r"(\d+)/800 images, [\d.]+ images/s, ", result.stderr)
    assert 1 <= len(lines) <= seconds + 1
    assert lines == sorted(lines, key=int)


@pytest.mark.parametrize("count", [2, 4])
def test_shards_generate_what_one_process_generates(
    batch: Batch, whole: Path, cli: Cli, tmp_path: Path, count: int
) -> None:
    out = tmp_path / "out"
    for index in range(count):
        environment = {"OMPI_COMM_WORLD_RANK": str(index), "OMPI_COMM_WORLD_SIZE": str(count)}
        assert batch(out, **environment).returncode == 0
    assert len(list(out.glob("manifest-*.jsonl"))) == count
    assert_same(out, whole)
    assert cli("batch", "--merge", out).returncode == 0
    assert [path.name for path in out.glob("manifest*.jsonl")] == ["manifest.jsonl"]
    assert_same(out, whole)


def test_shards_on_other_disks_are_merged(
    batch: Batch, whole: Path, cli: Cli, tmp_path: Path
) -> None:
    folders = [tmp_path / f"machine{index}" for index in range(3)]
    for index, folder in enumerate(folders):
        assert batch(folder, "--shard", f"{index}/3").returncode == 0
    assert cli("batch", "--merge", folders[0], "--from", *folders[1:]).returncode == 0
    assert_same(folders[0], whole)


def test_status_of_a_part(batch: Batch, cli: Cli, refused: Refused, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert batch(out, "--shard", "1/4").returncode == 0
    text = cli("batch", "--status", out).stdout
    assert f"10 of {ITEMS} images" in text and "not running" in text
    assert "cannot read" in refused(3, "batch", "--status", tmp_path / "none")


def test_dry_run_writes_nothing(batch: Batch, tmp_path: Path) -> None:
    result = batch(tmp_path / "out", "--dry-run")
    assert result.returncode == 0 and f"{ITEMS} images to generate, about" in result.stdout
    assert not (tmp_path / "out").exists()


def test_captions_from_standard_input(cli: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    flags = ("-o", tmp_path / "out", "-m", drafter_bundle, "--name", "prompt_{index}")
    assert cli("batch", "-", *flags, input="a boat\na tree ❄ <b>\n").returncode == 0
    names = sorted(path.name for path in (tmp_path / "out" / "images").iterdir())
    assert names == ["prompt_0.png", "prompt_1.png"]
    assert cli("batch", "-", *flags, input='["a boat", "a tree ❄ <b>"]').returncode == 0
    assert len((tmp_path / "out" / "manifest.jsonl").read_text().splitlines()) == 2
    changed = cli("batch", "-", *flags, input="a boat\na house\n")
    assert changed.returncode == 2 and "captions_sha256" in changed.stderr


def test_layouts_of_scoring_tools(ran: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    lines = [{"prompt": f"a {word}", "tag": "one", "id": word} for word in ("boat", "tree")]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def generate(layout: str, count: int) -> Path:
        out = tmp_path / layout
        ran(
            "batch",
            tmp_path / "prompts.jsonl",
            "-o",
            out,
            "-m",
            drafter_bundle,
            "-b",
            count,
            "--layout",
            layout,
        )
        return out

    geneval = generate("geneval", 4) / "geneval"
    assert sorted(path.name for path in geneval.iterdir()) == ["00000", "00001"]
    assert json.loads((geneval / "00001" / "metadata.jsonl").read_text()) == lines[1]
    samples = sorted((geneval / "00001" / "samples").iterdir())
    assert [path.name for path in samples] == [f"{r:05d}.png" for r in range(4)]
    assert all(path.read_bytes()[1:4] == b"PNG" for path in samples)
    dpg = generate("dpg", 4) / "dpg"
    assert sorted(path.name for path in dpg.iterdir()) == ["boat.png", "tree.png"]
    longtext = generate("longtext", 2) / "images"
    assert sorted(path.name for path in longtext.iterdir()) == [
        "boat_0.png", "boat_1.png", "tree_0.png", "tree_1.png"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--layout", "coco"], 2, "two images would be"),
        (["--select", "best"], 2, "select"),
        (["--offset", ITEMS], 2, "offset"),
        (["--limit", 0], 2, "limit"),
        (["--shard", "4/4"], 2, "shard"),
        (["--shard", "x"], 2, "I/N"),
        (["--layout", "tree"], 2, "layout"),
        (["--name", "{colour}"], 2, "--name: got '{colour}.png'"),
        (["--name", "a/{index}"], 3, "a/0.png"),
        (["--name", "same"], 2, "two images"),
        (["-b", 0], 2, "batch-count"),
        (["--retry", -1], 2, "--retry: got -1"),
        (["--seed", -1], 2, "seed"),
        (["--queue", "nowhere"], 2, "HOST:PORT"),
    ],
)
def test_refusals_leave_nothing(
    batch: Batch, tmp_path: Path, flags: list[object], code: int, words: str
) -> None:
    result = batch(tmp_path / "out", *flags)
    assert result.returncode == code, result.stderr
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
