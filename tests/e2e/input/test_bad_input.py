"""Mistakes of people and machines: one line, the right exit code, nothing left behind."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
import torch

from tests.e2e.support import Cli, Refused

DRAW = ("generate", "-p", "a")


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
