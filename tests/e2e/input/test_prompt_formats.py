"""Prompt files as spreadsheets, data frames, benchmarks and web UIs write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import Cli, Refused

CSV = 'Prompts,Category\r\n"A ""red"", round\nball",Colors\r\nplain,x\r\n'
CAPTIONS = ['A "red", round\nball', "plain"]


def written(cli: Cli, *flags: object, **options: Any) -> list[dict[str, Any]]:
    result = cli("generate", *flags, "-o", "%d.png", "--json", **options)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("drawbench.csv", CSV.encode()),
        ("prompts", CSV.encode()),
        ("excel.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("unicode.txt", CSV.replace(",C", "\tC").replace(",x", "\tx").encode("utf-16")),
        ("p.tsv", b'Prompt\tnote\n"A ""red"", round\nball"\tx\nplain\ty\n'),
        ("ids.json", json.dumps({"0": CAPTIONS[0], "1": CAPTIONS[1]}).encode()),
        ("ids", json.dumps({"0": {"Prompt": CAPTIONS[0]}, "1": {"prompt": "plain"}}).encode()),
        ("key.json", json.dumps({"name": "x", "prompts": CAPTIONS}, indent=2).encode()),
        ("list", json.dumps([{"TEXT": each} for each in CAPTIONS], indent=1).encode()),
        ("rows.jsonl", b"# two\n" + b"\n".join(json.dumps({"caption": c}).encode() for c in CAPTIONS)),
    ],
)  # fmt: skip
def test_all_commands_read_the_same(
    cli: Cli, tmp_path: Path, name: str, content: bytes, tiny_bundle: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    images = written(cli, "--prompt-file", name)
    assert [image["prompt"] for image in images] == CAPTIONS
    assert [image["seed"] for image in images] == [42, 43]
    assert cli("batch", name, "-o", "out/").returncode == 0
    assert json.loads((tmp_path / "out/captions.json").read_text()) == CAPTIONS


@pytest.mark.parametrize("command", ["generate", "batch"])
def test_columns(cli: Cli, ran: Cli, tmp_path: Path, command: str) -> None:
    (tmp_path / "t.csv").write_text('prompt,Long Caption,seed\na,"b, c",7.0\n')
    words = {
        "generate": ("--prompt-file", "t.csv", "-o", "x/", "--json"),
        "batch": ("t.csv", "-o", "x/", "--json"),
    }[command]
    result = ran(command, *words, "--column", "Long Caption")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    line = next(line for line in found if line.get("event", "image") == "image")
    assert line.get("prompt", line.get("caption")) == "b, c" and line["seed"] == 7
    missing = cli(command, *words, "--column", "none")
    assert missing.returncode == 3 and "t.csv line 1: got no column 'none' among" in missing.stderr


@pytest.mark.parametrize("command", ["generate", "batch"])
def test_every_line_of_a_jsonl_file_is_json(cli: Cli, tmp_path: Path, command: str) -> None:
    """A name that promises JSON is believed; other files may mix captions and objects."""
    flags = {"generate": ("--prompt-file",), "batch": ("--captions",)}[command]
    (tmp_path / "texts.jsonl").write_text('"a red boat"\n{"text": "plain"}\n')
    assert cli(command, *flags, "texts.jsonl", "-o", "texts/").returncode == 0
    for number, content in enumerate(('a cat\n{"prompt": "b"}\n', '{"prompt": "b"}\na cat\n'), 1):
        for name in ("lines.jsonl", "lines.txt"):
            (tmp_path / name).write_text(content)
        result = cli(command, *flags, "lines.jsonl", "-o", f"{number}/")
        assert result.returncode == (8 if command == "generate" else 3)
        assert f"lines.jsonl line {number}: got a cat, expected a JSON object" in result.stderr
        assert cli(command, *flags, "lines.txt", "-o", f"mixed-{number}/").returncode == 0


def test_lines_of_web_uis(ran: Cli, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(
        '--prompt "a cat, ((sitting)) BREAK [dark]" --seed 350 --cfg_scale 4 --batch_count 2\n{red|blue} boat\n'
    )
    result = ran("generate", "--prompt-file", "p.txt", "-o", "%d.png", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["prompt"] for line in lines] == ["a cat, ((sitting)) BREAK [dark]"] * 2 + [
        "{red|blue} boat"
    ]
    assert [line["seed"] for line in lines] == [350, 351, 44]
    assert lines[0]["cfg_scale"] == 4
    notes = [line for line in result.stderr.splitlines() if "web UIs" in line]
    assert len(notes) == 1 and "((sitting)), BREAK, {red|blue}" in notes[0]
    for text, words in {
        '--prompt "a" --sampler_name x': "p.txt line 1: unknown field sampler_name, expected one of",
        "a cat --ar 16:9": "p.txt line 1: got '--ar' behind a caption",
        '--prompt "a': "p.txt line 1: got a quote",
    }.items():
        (tmp_path / "p.txt").write_text(text + "\n")
        assert words in refused(3, "generate", "--prompt-file", "p.txt", "-o", "x.png")
        assert words in refused(3, "batch", "p.txt", "-o", "x/")


def test_random_seeds_are_recorded(cli: Cli, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "p").write_text('{"prompt": "a", "seed": -1}\n--prompt a --seed -1.0\n')
    first, second = written(cli, "--prompt-file", "p")
    assert first["seed"] != second["seed"] and first["seed"] >= 0
    [again] = written(cli, "-p", "a", "--seed", first["seed"], "--overwrite")
    assert again["seed"] == first["seed"]
    (tmp_path / "p").write_text('{"prompt": "a", "seed": 4.5}')
    assert "seed: got 4.5" in refused(3, "generate", "--prompt-file", "p")
    (tmp_path / "p").write_text('{"prompt": "a", "seed": -1}')
    words = refused(3, "batch", "p", "-o", "x/")
    assert "p line 1: seed: got -1" in words and "continued" in words


@pytest.mark.parametrize("command", ["generate", "batch"])
def test_texts_of_numbers_are_numbers(ran: Cli, tmp_path: Path, command: str) -> None:
    """As in tables and flags, which have texts alone."""
    (tmp_path / "p.jsonl").write_text('{"prompt": "a", "seed": "42", "cfg_scale": "2.0"}\n')
    words = {
        "generate": ("--prompt-file", "p.jsonl", "-o", "x.png"),
        "batch": ("p.jsonl", "-o", "x"),
    }
    result = ran(command, *words[command], "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["seed"] for line in lines if "seed" in line] == [42]


def test_tables_of_standard_input(cli: Cli) -> None:
    images = written(cli, "--prompt-file", "-", input='# mine\nprompt,seed\n"a, b",9\n')
    assert [(image["prompt"], image["seed"]) for image in images] == [("a, b", 9)]
    images = written(cli, "--prompt-file", "-", "--overwrite", input='{\n"prompt": "c"\n}\n')
    assert images[0]["prompt"] == "c"


def test_fields_that_batch_does_not_read_are_named(ran: Cli, tmp_path: Path) -> None:
    """generate takes them from the same file; a data set may have columns of these names."""
    lines = [{"prompt": "a", "tree": None}, {"prompt": "b", "batch_count": 2, "Output": "b.png"}]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, [*lines, lines[1]])))
    result = ran("batch", "p.jsonl", "-o", "x/")
    [note] = [line for line in result.stderr.splitlines() if "does not read" in line]
    assert note.startswith("note: p.jsonl line 2: batch does not read batch_count, output, which")
    (tmp_path / "plain.csv").write_text("prompt,category\na,x\n")
    assert "does not read" not in ran("batch", "plain.csv", "-o", "y/").stderr
