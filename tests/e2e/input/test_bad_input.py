"""Mistakes of users and failures of machines: one line, the right exit code, no files left behind."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
import torch

from tests.e2e.support import Cli, Refused

GENERATE = ("generate", "-p", "a")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no command"),
        (("paint",), "unknown command paint"),
        (("-p", "a boat"), "no command given; -p is a flag of generate: lamplighter generate -p ..."),
        (("-pboat",), "-p is a flag of generate"),
        (("--seed=3",), "--seed is a flag of generate: lamplighter generate --seed ..."),
        (("--port", 80), "--port is a flag of serve: lamplighter serve --port ..."),
        (("--versoin",), "no command given before --versoin; did you mean --version?"),
        (("a boat",), 'unknown command a boat; a caption stands behind -p: lamplighter generate -p "'),
        (("bench", "--compare", "a.json"), "--compare: got 1 value, expected 2"),
        (("generat",), "did you mean generate"),
        ((*GENERATE, "--cfg-scal", 3), "did you mean --cfg-scale"),
        ((*GENERATE, "--frobnicate"), "unknown argument --frobnicate"),
        ((*GENERATE, "stray"), 'unknown argument stray; a caption of several words needs quotes: -p "'),
        ((*GENERATE, "--model", ""), "--model: got an empty name"),
        ((*GENERATE, "--seed"), "--seed: got nothing, expected a whole number"),
        ((*GENERATE, "--top-k", "x"), "--top-k: got 'x', expected a whole number"),
        ((*GENERATE, "--top-p", 1, "--top-p", 1), "--top-p: got 2 values, expected one"),
        ((*GENERATE, "--overwrite", "--skip-existing"), "excludes"),
        ((*GENERATE, "-b", 2, "-o", "-"), "one image for standard output"),
        ((*GENERATE, "--json", "-o", "-"), "both write to stdout"),
        ((*GENERATE, "--grid", "g%04d.png"), "--grid: got 'g%04d.png', expected one name"),
        ((*GENERATE, "-q", "-v"), "--quiet"),
        ((*GENERATE, "--temperature", "warm"), "--temperature: got 'warm', expected a number"),
        ((*GENERATE, "--temperature", "nan"), "--temperature: got nan"),
        ((*GENERATE, "--temperature", "inf"), "--temperature: got inf"),
        ((*GENERATE, "--temperature", -0.5), "--temperature: got -0.5, expected"),
        ((*GENERATE, "--cfg-scale", "nan"), "--cfg-scale"),
        ((*GENERATE, "--cfg-scale", -1), "--cfg-scale"),
        ((*GENERATE, "--top-p", 0), "--top-p"),
        ((*GENERATE, "--top-p", 1.5), "--top-p"),
        ((*GENERATE, "--top-p", "nan"), "--top-p"),
        ((*GENERATE, "--top-k", -3), "--top-k"),
        ((*GENERATE, "--top-k", 1.5), "--top-k"),
        ((*GENERATE, "--batch-count", 0), "--batch-count"),
        ((*GENERATE, "--batch-count", 10**9), "--batch-count"),
        ((*GENERATE, "--seed", 2**64), "18446744073709551615"),
        ((*GENERATE, "--seed", -2), "--seed"),
        ((*GENERATE, "--seed", "1x"), "--seed"),
        ((*GENERATE, "--seed", ""), "--seed"),
        ((*GENERATE, "-W", 33), "32x32"),
        ((*GENERATE, "-W", -32), "32x32"),
        ((*GENERATE, "--threads", -1), "--threads"),
        ((*GENERATE, "--threads", 100_000), "--threads"),
        ((*GENERATE, "--batch-size", 0), "--batch-size"),
        ((*GENERATE, "--cfg-interval", -2), "--cfg-interval"),
        ((*GENERATE, "--device", "gpu"), "--device"),
        ((*GENERATE, "--dtype", "int3"), "--dtype"),
        ((*GENERATE, "--class", 3), "--class"),
        (("generate",), "nothing to generate"),
        (("generate", "-p"), "--prompt"),
        ((*GENERATE, "-o", ""), "output: got ''"),
        ((*GENERATE, "-o", "a.gif"), ".png"),
        ((*GENERATE, "-o", "{name}.png"), "{index}, {prompt} or {seed}"),
        ((*GENERATE, "-o", "{seed"), "{index}, {prompt} or {seed}"),
        ((*GENERATE, "-o", "%99d.png"), "%0Nd"),
        ((*GENERATE, "-o", "x.png", "--grid", "x.png"), "x.png twice"),
        ((*GENERATE, "-o", "x.png", "--grid", "x.gif"), "--grid"),
        ((*GENERATE, "-o", "x.png", "--acceptance-map", "x.bmp"), "--acceptance-map"),
        (("decode",), "codes"),
        (("encode",), "images"),
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
    assert "byte 3 is not valid UTF-8" in refused(
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
        ("# a comment\n\xff\xfe", "line 2: byte 1 is not valid UTF-8"),
        ('\n{"prompt": }', "line 2: invalid JSON"),
        ('{"prompt": 3}', 'prompt: got 3, expected a string'),
        ('{"prompt": "a", "colour": 1}', "unknown field colour, expected one of adapt, ahead, alpha, "),
        ('# only a comment\n', "no prompts"),
        ('[]', "no prompts"),
        ('[{"prompt": 3}, {"prompt": 4}]', "p element 0: prompt: got 3"),
        ('["a", ', "invalid JSON"),
        ('{"prompt": "a", "seed": -2}', "seed"),
        ('{"prompt": "a", "seed": 18446744073709551616}', "seed"),
        ('{"prompt": "a", "temperature": "hot"}', "temperature"),
        ('{"prompt": "a", "temperature": -1}', "line 1: temperature: got"),
        ('{"prompt": "a", "temperature": 1e99}', "line 1: temperature: got"),
        ('{"prompt": "a", "width": 31}', "32x32"),
        ('{"prompt": "a", "width": 0}', "width"),
        ('{"seed": 3}', "got no prompt, expected prompt, caption, text or class"),
        ('{"prompt": "\\ud800"}', "invalid JSON"),
        ("{" * 100_000, "bytes, expected"),
    ],
)  # fmt: skip
def test_prompt_files(refused: Refused, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "p").write_bytes(content.encode("latin-1"))
    if content.startswith("{{"):
        words = "invalid JSON"
    assert words in refused(3, "generate", "--prompt-file", "p")


def test_instructions_that_do_not_exist(refused: Refused) -> None:
    words = refused(2, *GENERATE, "--device", "cpu", env={"LAMPLIGHTER_ISA": "sse9"})
    assert (
        "LAMPLIGHTER_ISA: got 'sse9', expected portable, neon, avx2, avxvnni, avx512 or amx"
        in words
    )


def test_prompt_file_that_cannot_be_read(refused: Refused, tmp_path: Path) -> None:
    assert "none: No such file" in refused(3, "generate", "--prompt-file", "none")
    assert "Is a directory" in refused(3, "generate", "--prompt-file", tmp_path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("", "invalid JSON"),
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
    assert words in refused(3, *GENERATE, "--config", "c")


def test_parameters_from_other_files(cli: Cli, refused: Refused, tmp_path: Path) -> None:
    assert "No such file" in refused(3, "generate", "--params-from", "none.png")
    (tmp_path / "p.png").write_bytes(b"GIF89a")
    assert "not an image" in refused(3, "generate", "--params-from", "p.png")
    assert cli("generate", "-p", "a", "-o", "x.png", "--no-metadata").returncode == 0
    assert "holds no parameters" in refused(3, "generate", "--params-from", "x.png", "-o", "y.png")
    (tmp_path / "p.png").write_bytes((tmp_path / "x.png").read_bytes()[:60])
    assert "damaged PNG" in refused(3, "generate", "--params-from", "p.png")


def test_outputs_that_cannot_be_written(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("")
    assert "No such file" in refused(7, *GENERATE, "-o", "none/x.png")
    assert "Not a directory" in refused(7, *GENERATE, "-o", "file/x.png")
    assert "cannot create folder" in refused(7, *GENERATE, "-o", "file/new/")
    assert "it is a directory" in refused(7, *GENERATE, "--grid", "folder.png")
    assert "No such file" in refused(7, *GENERATE, "--save-codes", "none/c.json")
    assert "File name too long" in refused(7, *GENERATE, "-o", "x" * 300 + ".png")
    assert "it exists" in refused(7, *GENERATE, "--grid", "file")


def test_full_disk(refused: Refused) -> None:
    assert "No space left" in refused(7, *GENERATE, "-q", "-o", "/dev/full")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    assert "File too large" in refused(7, *GENERATE, "-q", "-o", "x.png", preexec_fn=limit)
    beside = (*GENERATE, "-q", "-b", 3, "--batch-size", 1, "--threads", 2, "-o", "%d.png")
    assert "File too large" in refused(
        7, *beside, preexec_fn=limit
    )  # met while the next is generated


def test_closed_standard_output(cli: Cli, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        for words in ((*GENERATE, "-q"), ("--help",), ("--version",), ("bench", "-h")):
            result = cli(*words, capture_output=False, stdout=full, stderr=-1)
            assert result.returncode == 7 and "standard output" in result.stderr, words


def test_missing_device(refused: Refused, cli: Cli) -> None:
    line = refused(5, *GENERATE, "--device", "cuda:63")
    if "CUDA kernels for" not in cli("--version").stdout:
        reason = "this build has no CUDA kernels; try device cpu"
    elif torch.cuda.is_available():
        reason = "no CUDA device of this number"
    else:
        reason = "no NVIDIA driver found; try device cpu"
    assert f"--device cuda:63: {reason}" in line


def test_caches_that_cannot_fit(refused: Refused, demo_bundle: Path) -> None:
    """Refuses before it loads weights, and names the batch size that fits."""
    count = ("--batch-count", 100_000, "--batch-size", 100_000, "-q")
    line = refused(6, *GENERATE[:3], *count, model=demo_bundle)
    found = re.search(r"images need (\S+) [TG]iB, \S+ [MG]iB free; batch_size (\d+) fits", line)
    assert found and 0 < int(found[2]) < 100_000


def test_full_memory(refused: Refused, demo_bundle: Path) -> None:
    """First the caches do not fit, then later allocations."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (900 << 20, 900 << 20))

    def refuse(count: int) -> str:
        words = ("--batch-count", count, "--batch-size", count, "--dtype", "fp32", "-q")
        line = refused(6, *GENERATE[:3], *words, model=demo_bundle, preexec_fn=limit)
        assert re.search(r"out of memory.* \S+ [MG]iB, \S+ [MG]iB free; .*batch_size", line)
        return line

    found = re.search(r"batch_size (\d+) fits", refuse(400))
    assert found
    refuse(int(found[1]))
