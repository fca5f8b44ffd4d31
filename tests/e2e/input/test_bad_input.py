"""Mistakes of people and machines: one line, the right exit code, nothing left behind."""

from __future__ import annotations

import json
import re
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.e2e.support import CODES, Cli, Refused, edit_manifest

DRAW = ("generate", "-p", "a")
DECODER_KEYS = {
    "schema_version", "name", "family", "exporter", "licence", "source", "files", "modules", "decoder",
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no command"),
        (("paint",), "unknown command paint"),
        (("generat",), "did you mean generate"),
        ((*DRAW, "--cfg-scal", 3), "did you mean --cfg-scale"),
        ((*DRAW, "--frobnicate"), "unknown argument --frobnicate"),
        ((*DRAW, "stray"), 'unknown argument stray; a caption of several words needs quotes: -p "'),
        ((*DRAW, "--model", ""), "--model: got an empty name"),
        ((*DRAW, "--seed"), "--seed: got nothing, expected a whole number"),
        ((*DRAW, "--top-k", "x"), "--top-k: got 'x', expected a whole number"),
        ((*DRAW, "--top-p", 1, "--top-p", 1), "--top-p: got 2 values, expected one"),
        ((*DRAW, "--overwrite", "--skip-existing"), "excludes"),
        ((*DRAW, "-b", 2, "-o", "-"), "one picture for standard output"),
        ((*DRAW, "--json", "-o", "-"), "both print"),
        ((*DRAW, "--grid", "g%04d.png"), "--grid: got 'g%04d.png', expected one name"),
        ((*DRAW, "-q", "-v"), "--quiet"),
        ((*DRAW, "--temperature", "warm"), "--temperature: got 'warm', expected a number"),
        ((*DRAW, "--temperature", "nan"), "--temperature: got nan"),
        ((*DRAW, "--temperature", "inf"), "--temperature: got inf"),
        ((*DRAW, "--temperature", -0.5), "--temperature"),
        ((*DRAW, "--cfg-scale", "nan"), "--cfg-scale"),
        ((*DRAW, "--cfg-scale", -1), "--cfg-scale"),
        ((*DRAW, "--top-p", 0), "--top-p"),
        ((*DRAW, "--top-p", 1.5), "--top-p"),
        ((*DRAW, "--top-p", "nan"), "--top-p"),
        ((*DRAW, "--top-k", -3), "--top-k"),
        ((*DRAW, "--top-k", 1.5), "--top-k"),
        ((*DRAW, "--batch-count", 0), "--batch-count"),
        ((*DRAW, "--batch-count", 10**9), "--batch-count"),
        ((*DRAW, "--seed", 2**64), "18446744073709551615"),
        ((*DRAW, "--seed", -2), "--seed"),
        ((*DRAW, "--seed", "1x"), "--seed"),
        ((*DRAW, "--seed", ""), "--seed"),
        ((*DRAW, "-W", 33), "32x32"),
        ((*DRAW, "-W", -32), "32x32"),
        ((*DRAW, "--threads", -1), "--threads"),
        ((*DRAW, "--threads", 100_000), "--threads"),
        ((*DRAW, "--batch-size", 0), "--batch-size"),
        ((*DRAW, "--cfg-interval", -2), "--cfg-interval"),
        ((*DRAW, "--device", "gpu"), "--device"),
        ((*DRAW, "--dtype", "int3"), "--dtype"),
        ((*DRAW, "--class", 3), "--class"),
        (("generate",), "nothing to draw"),
        (("generate", "-p"), "--prompt"),
        ((*DRAW, "-o", ""), "output: got ''"),
        ((*DRAW, "-o", "a.gif"), ".png"),
        ((*DRAW, "-o", "{name}.png"), "{index}, {prompt} or {seed}"),
        ((*DRAW, "-o", "{seed"), "{index}, {prompt} or {seed}"),
        ((*DRAW, "-o", "%99d.png"), "%0Nd"),
        ((*DRAW, "-o", "x.png", "--grid", "x.png"), "x.png twice"),
        ((*DRAW, "-o", "x.png", "--grid", "x.gif"), "--grid"),
        ((*DRAW, "-o", "x.png", "--acceptance-map", "x.bmp"), "--acceptance-map"),
        (("decode",), "codes"),
        (("bench", "--methods", "magic"), "magic"),
        (("bench", "--repeats", 0), "--repeats"),
    ],
)  # fmt: skip
def test_usage(refused: Refused, arguments: tuple[object, ...], words: str) -> None:
    assert words in refused(2, *arguments)


@pytest.mark.parametrize(
    "value", ["a\nb", "a\rb\x1b[2J", "a" * 40_000, "\u732b" * 10_000, "a\u2028b"]
)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--method",), "expected ar, eagle"),
        (("--method", "eagle", "--rule"), "expected one of exact"),
        (("--method", "eagle", "--tree"), "or a file"),
        (("--method", "sjd", "--init"), "expected uniform"),
        (("--dtype",), "int4"),
        (("--seed",), "expected -1 (random) or 0 to"),
        (("--top-k",), "expected a whole number"),
        (("-o", "{name}"), "between braces"),
        ((), "(help: lamplighter generate --help)"),
    ],
)  # fmt: skip
def test_values_end_no_message(
    refused: Refused, drafter_bundle: Path, arguments: tuple[str, ...], expected: str, value: str
) -> None:
    given = (*arguments[:-1], arguments[-1] + value) if "-o" in arguments else (*arguments, value)
    line = refused(2, *DRAW, *given, model=drafter_bundle)
    assert expected in line and len(line) < 1000
    assert len(line.splitlines()) == 1 and line[:-1].isprintable()


def test_values_of_files_end_no_message(refused: Refused, tmp_path: Path) -> None:
    for value in ("a\0b", "a\nb", "a" * 40_000):
        (tmp_path / "p.jsonl").write_text(json.dumps({"prompt": "a", "method": value}))
        line = refused(3, "generate", "--prompt-file", "p.jsonl")
        assert "p.jsonl line 1: method: got 'a" in line and "expected ar" in line
        (tmp_path / "p.jsonl").write_text(json.dumps({"prompt": "a", value: 1}))
        line = refused(3, "generate", "--prompt-file", "p.jsonl")
        assert "p.jsonl line 1: unknown field a" in line and "expected one of" in line
        (tmp_path / "c.json").write_text(json.dumps({value: 1}))
        assert "c.json: unknown flag a" in refused(3, *DRAW, "--config", "c.json")
    line = refused(3, "generate", "--prompt-file", "x" * 40_000)
    assert "File name too long" in line and len(line) < 2000


def test_links_and_zero_bytes(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "link.png").symlink_to("gone.png")
    assert "missing" in refused(7, "generate", "-p", "x", "-o", "link.png")
    (tmp_path / "p.jsonl").write_text('{"prompt": "a\\u0000b"}')
    assert "zero byte" in refused(3, "generate", "--prompt-file", "p.jsonl")


def test_outputs_that_collide(refused: Refused, tmp_path: Path) -> None:
    lines = ['{"prompt": "a", "output": "x.png"}', '{"prompt": "b", "output": "./x.png"}']
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    assert "x.png" in refused(2, "generate", "--prompt-file", "p.jsonl")


@pytest.mark.parametrize("prompt", ["", " ", "\t\n"])
def test_blank_prompts(refused: Refused, prompt: str) -> None:
    assert "prompt 1: the prompt is empty" in refused(3, "generate", "-p", prompt)


def test_prompt_that_is_no_utf8(refused: Refused) -> None:
    assert "byte 3 is no valid UTF-8" in refused(
        3, "generate", "-p", b"ab\xff".decode("utf-8", "surrogateescape")
    )


def test_prompt_of_a_megabyte(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 200_000)
    assert "bytes, expected at most" in refused(3, "generate", "--prompt-file", "long.txt")
    (tmp_path / "long.txt").write_text("x" * 1_000_000)
    assert "bytes, expected at most" in refused(3, "generate", "--prompt-file", "long.txt")


def test_longest_prompt_is_cut_as_the_tokenizer_does(cli: Cli) -> None:
    assert cli("generate", "-p", "word " * 6000).returncode == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no prompts"),
        ("\n \n", "no prompts"),
        ("# a comment\n\xff\xfe", "line 2: byte 1 is no valid UTF-8"),
        ('\n{"prompt": }', "line 2: no valid JSON"),
        ('{"prompt": 3}', 'prompt: got 3, expected a string'),
        ('{"prompt": "a", "colour": 1}', "unknown field colour, expected one of ahead, alpha, batch_count, "),
        ('# only a comment\n', "no prompts"),
        ('[]', "no prompts"),
        ('[{"prompt": 3}, {"prompt": 4}]', "p element 0: prompt: got 3"),
        ('["a", ', "no valid JSON"),
        ('{"prompt": "a", "seed": -1}', "seed"),
        ('{"prompt": "a", "seed": 18446744073709551616}', "seed"),
        ('{"prompt": "a", "temperature": "hot"}', "temperature"),
        ('{"prompt": "a", "temperature": -1}', "line 1: temperature: got"),
        ('{"prompt": "a", "temperature": 1e99}', "line 1: temperature: got"),
        ('{"prompt": "a", "width": 31}', "32x32"),
        ('{"prompt": "a", "width": 0}', "width"),
        ('{"seed": 3}', "the prompt is empty"),
        ('{"prompt": "\\ud800"}', "no valid JSON"),
        ("{" * 100_000, "bytes, expected"),
    ],
)  # fmt: skip
def test_prompt_files(refused: Refused, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "p").write_bytes(content.encode("latin-1"))
    if content.startswith("{{"):
        words = "no valid JSON"
    assert words in refused(3, "generate", "--prompt-file", "p")


def test_a_picture_holds_no_codes(cli: Cli, tmp_path: Path) -> None:
    assert cli(*DRAW, "-o", "a.png").returncode == 0
    result = cli("decode", "a.png", "-o", "b.png")
    assert result.returncode == 3 and "a.png: got a picture, expected the tokens" in result.stderr


def test_instructions_that_do_not_exist(refused: Refused) -> None:
    words = refused(2, *DRAW, "--device", "cpu", env={"LAMPLIGHTER_ISA": "sse9"})
    assert "LAMPLIGHTER_ISA: got 'sse9', expected portable, avx2, avx512 or amx" in words


def test_prompt_file_that_cannot_be_read(refused: Refused, tmp_path: Path) -> None:
    assert "none: No such file" in refused(3, "generate", "--prompt-file", "none")
    assert "Is a directory" in refused(3, "generate", "--prompt-file", tmp_path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("", "no valid JSON"),
        ("[1]", "a JSON object"),
        ('{"colour": 1}', "unknown flag colour"),
        ('{"config": "x"}', "unknown flag config"),
        ('{"top_k": {}}', "top_k"),
        ('{"top_k": "many"}', "top-k"),
        ('{"top_k": null}', "top_k"),
    ],
)
def test_config_files(refused: Refused, tmp_path: Path, config: str, words: str) -> None:
    (tmp_path / "c").write_text(config)
    assert words in refused(3, *DRAW, "--config", "c")


def test_parameters_from_other_files(cli: Cli, refused: Refused, tmp_path: Path) -> None:
    assert "No such file" in refused(3, "generate", "--params-from", "none.png")
    (tmp_path / "p.png").write_bytes(b"GIF89a")
    assert "not a picture" in refused(3, "generate", "--params-from", "p.png")
    assert cli("generate", "-p", "a", "-o", "x.png", "--no-metadata").returncode == 0
    assert "holds no parameters" in refused(3, "generate", "--params-from", "x.png", "-o", "y.png")
    (tmp_path / "p.png").write_bytes((tmp_path / "x.png").read_bytes()[:60])
    assert "damaged PNG" in refused(3, "generate", "--params-from", "p.png")


def test_outputs_that_cannot_be_written(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("")
    assert "No such file" in refused(7, *DRAW, "-o", "none/x.png")
    assert "Not a directory" in refused(7, *DRAW, "-o", "file/x.png")
    assert "cannot create folder" in refused(7, *DRAW, "-o", "file/new/")
    assert "it is a directory" in refused(7, *DRAW, "--grid", "folder.png")
    assert "No such file" in refused(7, *DRAW, "--save-codes", "none/c.json")
    assert "File name too long" in refused(7, *DRAW, "-o", "x" * 300 + ".png")
    assert "it exists" in refused(7, *DRAW, "--grid", "file")


def test_full_disk(refused: Refused) -> None:
    assert "No space left" in refused(7, *DRAW, "-q", "-o", "/dev/full")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    assert "File too large" in refused(7, *DRAW, "-q", "-o", "x.png", preexec_fn=limit)
    beside = (*DRAW, "-q", "-b", 3, "--batch-size", 1, "--threads", 2, "-o", "%d.png")
    assert "File too large" in refused(7, *beside, preexec_fn=limit)  # met while the next is drawn


def test_closed_standard_output(cli: Cli, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        for words in ((*DRAW, "-q"), ("--help",), ("--version",), ("bench", "-h")):
            result = cli(*words, capture_output=False, stdout=full, stderr=-1)
            assert result.returncode == 7 and "standard output" in result.stderr, words


def test_missing_device(refused: Refused, cli: Cli) -> None:
    line = refused(5, *DRAW, "--device", "cuda:63")
    if "CUDA kernels for" not in cli("--version").stdout:
        reason = "this build has no CUDA kernels; try device cpu"
    elif torch.cuda.is_available():
        reason = "not there"
    else:
        reason = "no NVIDIA driver found; try device cpu"
    assert f"--device cuda:63: {reason}" in line


def test_caches_that_cannot_fit(refused: Refused, demo_bundle: Path) -> None:
    """Refused before anything is read, with the batch that fits."""
    count = ("--batch-count", 1_000_000, "--batch-size", 1_000_000, "-q")
    line = refused(6, *DRAW[:3], *count, model=demo_bundle)
    found = re.search(r"pictures need (\S+) [TG]iB, \S+ [MG]iB free; batch_size (\d+) fits", line)
    assert found and 0 < int(found[2]) < 1_000_000


def test_full_memory(refused: Refused, demo_bundle: Path) -> None:
    """First the caches do not fit, then what comes after those that do."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (900 << 20, 900 << 20))

    def refuse(count: int) -> str:
        words = ("--batch-count", count, "--batch-size", count, "--dtype", "fp32", "-q")
        line = refused(6, *DRAW[:3], *words, model=demo_bundle, preexec_fn=limit)
        assert re.search(r"out of memory.* \S+ [MG]iB, \S+ [MG]iB free; .*batch_size", line)
        return line

    found = re.search(r"batch_size (\d+) fits", refuse(400))
    assert found
    refuse(int(found[1]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no valid JSON"),
        ("{}", "format is missing"),
        ('{"format": "other", "schema": 1, "pictures": []}', "format"),
        ('{"format": "lamplighter codes", "schema": 2, "pictures": []}', "schema"),
        ('{"format": "lamplighter codes", "schema": 1, "pictures": []}', "pictures"),
        ('{"format": "lamplighter codes", "schema": 1, "pictures": [{"rows": 1, "columns": 2, "codes": [1]}]}', "1 indices, expected 2"),
        ('{"format": "lamplighter codes", "schema": 1, "pictures": [{"rows": 1, "columns": 1, "codes": [-1]}]}', "-1"),
        ('{"format": "lamplighter codes", "schema": 1, "pictures": [{"rows": 1, "columns": 1, "codes": [40]}]}', "got id 40"),
        ('{"format": "lamplighter codes", "schema": 1, "pictures": [{"rows": 0, "columns": 1, "codes": []}]}', "rows"),
        ('{"format": "lamplighter codes", "schema": 1, "pictures": [{"rows": 1, "columns": 1, "codes": ["a"]}]}', "integers"),
    ],
)  # fmt: skip
def test_code_files(refused: Refused, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "codes.json").write_text(content)
    assert words in refused(3, "decode", "codes.json", "-o", "x.png")


def codes_file(*grids: tuple[int, int], first: int = 0) -> str:
    pictures = [
        {"rows": rows, "columns": columns, "codes": [first] + [0] * (rows * columns - 1)}
        for rows, columns in grids
    ]
    return json.dumps({"format": "lamplighter codes", "schema": 1, "pictures": pictures})


@pytest.mark.parametrize("grid", [(1, 4096), (128, 128), (1024, 1024), (3, 4), (4, 3), (8, 8)])
def test_codes_of_other_grids(
    refused: Refused, tiny_bundle: Path, tmp_path: Path, grid: tuple[int, int]
) -> None:
    """Before weights are read, which are gone, and before files are made."""
    copy = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, copy)
    (copy / "image_decoder.pt").unlink()
    (tmp_path / "codes.json").write_text(codes_file((4, 4), grid))
    words = refused(3, "decode", "codes.json", "-o", "new/", model=copy, timeout=60)
    got = f"{grid[0]}x{grid[1]} (rows x columns), expected 4x4"
    assert f"codes.json: pictures[1]: codes: got {got}" in words


@pytest.mark.parametrize("id", [-1, CODES, 2**31, 2**63, 2**64 - 1])
def test_codes_out_of_range(refused: Refused, tmp_path: Path, id: int) -> None:
    pictures = [json.loads(codes_file((4, 4), first=i))["pictures"][0] for i in (0, id)]
    file = {"format": "lamplighter codes", "schema": 1, "pictures": pictures}
    (tmp_path / "codes.json").write_text(json.dumps(file))
    words = refused(3, "decode", "codes.json", "-o", "x.png")
    assert words.startswith("lamplighter: error: codes.json: pictures[1]") and f"{id}, " in words


def test_codes_for_a_decoder_alone(
    cli: Cli, refused: Refused, tiny_bundle: Path, tmp_path: Path
) -> None:
    """Its bundle names no grids: any that a machine can bear."""
    copy = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, copy)

    def strip(manifest: dict[str, Any]) -> None:
        manifest["modules"] = {"image_decoder": manifest["modules"]["image_decoder"]}
        manifest["files"] = {"image_decoder.pt": manifest["files"]["image_decoder.pt"]}
        for key in set(manifest) - DECODER_KEYS:
            del manifest[key]

    edit_manifest(copy, strip)
    for rows, columns in ((3, 5), (1, 40)):
        (tmp_path / "codes.json").write_text(codes_file((rows, columns)))
        result = cli("decode", "codes.json", "-o", "x.png", "--overwrite", model=copy)
        assert result.returncode == 0, result.stderr
        with Image.open(tmp_path / "x.png") as image:
            assert image.size == (8 * columns, 8 * rows)
    for grid in ((1, 4096), (129, 128)):
        (tmp_path / "codes.json").write_text(codes_file(grid))
        words = refused(3, "decode", "codes.json", "-o", "y.png", model=copy, timeout=60)
        assert (
            f"pictures[0]: codes: got {grid[0]}x{grid[1]} (rows x columns), expected at most"
            in words
        )


def test_code_file_with_other_parameters(refused: Refused, tmp_path: Path) -> None:
    for parameters in ({}, {"schema": 1, "prompt": 3}, 5):
        picture = {"rows": 1, "columns": 1, "codes": [1], "parameters": parameters}
        file = {"format": "lamplighter codes", "schema": 1, "pictures": [picture]}
        (tmp_path / "codes.json").write_text(json.dumps(file))
        assert "pictures[0].parameters" in refused(3, "decode", "codes.json", "-o", "x.png")
