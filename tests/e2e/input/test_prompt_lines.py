"""Files and streams of prompts: plain lines, JSON lines and arrays, and lines that cannot be generated."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from PIL import Image

from tests.e2e.support import SIDE, Cli, Refused


def json_lines(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


def test_prompt_file_with_lines_and_fields(ran: Cli, tmp_path: Path) -> None:
    lines = [
        "\ufeffa plain line\r",
        "   ",
        json.dumps({"prompt": "fields", "seed": 9, "output": "own.png", "temperature": 0.5,
                    "cfg_scale": 2, "top_k": 5, "top_p": 0.75, "cfg_interval": 3,
                    "width": SIDE, "height": SIDE}),
        "né à 猫",
    ]  # fmt: skip
    (tmp_path / "prompts.txt").write_text("\n".join(lines), encoding="utf-8")
    result = ran("generate", "--prompt-file", "prompts.txt", "-o", "p%d.png", "--json")
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert (first["prompt"], first["output"], first["seed"]) == ("a plain line", "p0.png", 42)
    assert (second["output"], second["seed"], second["temperature"]) == ("own.png", 9, 0.5)
    assert (second["cfg_scale"], second["top_k"], second["top_p"]) == (2, 5, 0.75)
    assert second["cfg_interval"] == 3
    assert (third["prompt"], third["output"], third["seed"]) == ("né à 猫", "p2.png", 44)


def test_prompts_from_standard_input(cli: Cli, tmp_path: Path) -> None:
    result = cli("generate", "--prompt-file", "-", "-o", "%d.png", input="one\ntwo")
    assert result.stdout.splitlines() == ["0.png", "1.png"], result.stderr


def test_comments_and_arrays_of_prompts(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('# two prompts\n[in brackets\n{"prompt": "b", "seed": 5}\n')
    (tmp_path / "array").write_text(' [\n "[in brackets",\n {"prompt": "b", "seed": 5}\n]\n')
    for name in ("lines", "array"):
        result = cli("generate", "--prompt-file", name, "-o", f"{name}-out/", "--json")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [(line["prompt"], line["seed"]) for line in lines] == [
            ("[in brackets", 42),
            ("b", 5),
        ]


def test_lines_with_methods_and_counts_of_their_own(
    ran: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    lines = [
        {"prompt": "a", "batch_count": 2},
        {"prompt": "b", "method": "eagle", "tree": "chain-2", "seed": 42},
        {"prompt": "c", "method": "lantern++", "relax_k": 3, "lambda": [2]},
        {"prompt": "b", "seed": 42},
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = ran(
        "generate", "--prompt-file", "p.jsonl", "-o", "%d.png", "--json", "--temperature", 0,
        model=drafter_bundle,
    )  # fmt: skip
    generated = json_lines(result.stdout)
    assert [line["method"] for line in generated] == ["ar", "ar", "eagle", "lantern++", "ar"]
    assert [line["seed"] for line in generated] == [42, 43, 42, 45, 42]
    assert (generated[2]["tree"], generated[3]["relax_k"], generated[3]["lambda"]) == (
        "chain-2",
        3,
        [2],
    )
    with Image.open(tmp_path / "2.png") as exact, Image.open(tmp_path / "4.png") as plain:
        assert exact.tobytes() == plain.tobytes()  # greedy
        assert json.loads(exact.text["lamplighter"])["method"] == "eagle"


def test_a_line_changes_the_method_of_the_flags(
    ran: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    lines = [
        '{"prompt": "a", "tree": "chain-1"}',
        '{"prompt": "a"}',
        '{"prompt": "a", "method": "ar"}',
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    result = ran(
        "generate", "--prompt-file", "p.jsonl", "-o", "%d.png", "--json", "--method", "eagle", "--tree",
        "chain-3", model=drafter_bundle,
    )  # fmt: skip
    assert [line.get("tree") for line in json_lines(result.stdout)] == ["chain-1", "chain-3", None]


def test_a_failed_line_does_not_stop_the_others(cli: Cli, tmp_path: Path) -> None:
    lines = [
        "good",
        '{"prompt": }',
        '{"prompt": "small", "width": 31}',
        '{"prompt": "a", "method": "guess"}',
        '{"prompt": "twice", "batch_count": 2, "colour": 1}',
        "also good",
    ]
    (tmp_path / "p").write_text("\n".join(lines))
    result = cli("generate", "--prompt-file", "p", "-o", "%d.png", "--json", "-q")
    assert result.returncode == 8
    expected = [
        "p line 2: invalid JSON",
        "p line 3: size: got width 31",
        "p line 4: method: got 'guess'",
        "p line 5: unknown field colour",
        "5 of 7 images could not be generated",
    ]
    errors = result.stderr.splitlines()
    assert len(errors) == len(expected)
    for error, words in zip(errors, expected, strict=True):
        assert error.startswith("lamplighter: error: ") and words in error
    generated = json_lines(result.stdout)
    assert [line["index"] for line in generated[:5]] == [1, 2, 3, 4, 5]
    assert all("line" in line["error"] for line in generated[:5])
    # Images keep their index and seed when others fail.
    assert [(line["output"], line["seed"]) for line in generated[5:]] == [
        ("0.png", 42),
        ("6.png", 48),
    ]
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["0.png", "6.png"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("output", "/tmp/lamplighter-elsewhere.png"),
        ("output", "../x.png"),
        ("output", "a/../../x.png"),
        ("tree", "/etc/passwd"),
        ("tree", "t.json"),
        ("neighbours", "/etc/passwd"),
    ],
)
def test_lines_cannot_choose_files(
    refused: Refused, drafter_bundle: Path, tmp_path: Path, key: str, value: str
) -> None:
    (tmp_path / "t.json").write_text('{"paths": [[0]]}')
    line = {"prompt": "a", "method": "lantern", key: value}
    (tmp_path / "p").write_text(json.dumps(line))
    words = refused(3, "generate", "--prompt-file", "p", "-o", "x.png", model=drafter_bundle)
    assert f"p line 1: {key}: got {value}, expected" in words and f"--{key} may name" in words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            {"method": "lantern", "neighbours": "nope"},
            "neighbours: got nope, expected none; --neighbours",
        ),
        ({"output": "nodir/x.png"}, "cannot write nodir/x.png: folder nodir: No such file"),
        ({"output": "file/new/"}, "cannot create folder file/new/"),
        ({"output": ""}, "output: got '', expected a file name"),
        ({"output": "x.gif"}, "output: got 'x.gif', expected"),
        ({"output": "{name}.png"}, "{index}, {prompt} or {seed} between braces"),
        ({"output": "-"}, "one image for standard output"),
        ({"output": "there.png"}, "cannot write there.png: it exists"),
        ({"output": "", "batch_count": 2, "width": 31}, "size: got width 31"),
        ({"output": "x.gif", "colour": 1}, "unknown field colour"),
    ],
)
@pytest.mark.parametrize("kind", ["lines", "array"])
def test_bad_files_of_a_line_fail_that_line(
    cli: Cli, drafter_bundle: Path, tmp_path: Path, kind: str, line: dict[str, Any], words: str
) -> None:
    (tmp_path / "there.png").write_bytes(b"kept")
    (tmp_path / "file").write_text("")
    lines = [{"prompt": "x", **line}, {"prompt": "a boat"}]
    text = json.dumps(lines) if kind == "array" else "\n".join(map(json.dumps, lines))
    (tmp_path / "prompts").write_text(text)
    result = cli("generate", "--prompt-file", "prompts", "-o", "one/", "-q", model=drafter_bundle)
    assert result.returncode == 8, result.stderr
    first, last = result.stderr.splitlines()
    place = "prompts element 0: " if kind == "array" else "prompts line 1: "
    assert first.startswith(f"lamplighter: error: {place}") and words in first
    count = line.get("batch_count", 1)
    assert f"{count} of {count + 1} images could not be generated" in last
    assert result.stdout.splitlines() == [f"one/{count:04d}.png"]  # failed images keep their names
    assert (tmp_path / "there.png").read_bytes() == b"kept"


def test_outputs_of_lines_that_all_fail(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "p").write_text('{"prompt": "a", "output": "nodir/x.png"}\n')
    words = refused(3, "generate", "--prompt-file", "p")
    assert "p line 1: cannot write nodir/x.png" in words


def test_lines_whose_images_exist(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "there.png").write_bytes(b"kept")
    lines = [{"prompt": "a", "output": "there.png"}, {"prompt": "b", "output": "nodir/x.png"}]
    (tmp_path / "p").write_text("\n".join(map(json.dumps, lines)))
    result = cli("generate", "--prompt-file", "p", "--skip-existing")
    assert result.returncode == 8, result.stderr
    assert "p line 2: cannot write nodir/x.png" in result.stderr
    assert "1 of 2 images could not be generated" in result.stderr


def test_nothing_is_generated_where_all_lines_fail(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "p").write_text('{"prompt": 1}\n{"prompt": 2}\n')
    assert "p line 1: prompt: got 1" in refused(3, "generate", "--prompt-file", "p", "-o", "x/")


def test_wrong_flags_fail_the_run(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a\nb\n")
    assert "this run uses --method ar" in refused(
        2, "generate", "--prompt-file", "p", "--tree", "chain-2", "-o", "x/"
    )


@pytest.fixture
def stream(lamplighter: Path, tiny_bundle: Path, tmp_path: Path) -> Iterator[Popen[str]]:
    """The program with numbered outputs, reading standard input."""
    words = [lamplighter, "generate", "-m", tiny_bundle, "--prompt-file", "-", "-o", "%d.png"]
    with Popen(words, stdin=PIPE, stdout=PIPE, text=True, cwd=tmp_path) as run:
        yield run
        assert run.wait() == 0


def test_images_are_generated_while_lines_come(stream: Popen[str], tmp_path: Path) -> None:
    assert stream.stdin is not None and stream.stdout is not None
    for index, line in enumerate(["one\n", '{"prompt": "two", "seed": 5}\n', "# none\nthree\n"]):
        stream.stdin.write(line)
        stream.stdin.flush()
        assert stream.stdout.readline() == f"{index}.png\n"  # before the next line is written
    stream.stdin.write("a last one without an end")
    stream.stdin.close()
    assert stream.stdout.read() == "3.png\n"
    with Image.open(tmp_path / "2.png") as image:
        assert json.loads(image.text["lamplighter"])["seed"] == 44


def test_an_array_of_prompts_by_standard_input(stream: Popen[str]) -> None:
    assert stream.stdin is not None and stream.stdout is not None
    stream.stdin.write('["a",\n')
    stream.stdin.flush()
    time.sleep(0.2)  # the array comes in two parts
    stream.stdin.write('"b"]')
    stream.stdin.close()
    assert stream.stdout.read() == "0.png\n1.png\n"


def test_failures_of_a_stream(cli: Cli, tmp_path: Path) -> None:
    result = cli("generate", "--prompt-file", "-", "-o", "%d.png", input='{"prompt": 1}\nfine\n')
    assert (result.returncode, result.stdout) == (8, "1.png\n")
    assert "standard input line 1: prompt: got 1" in result.stderr
    result = cli("generate", "--prompt-file", "-", "-o", "x%d.png", input='{"prompt": 1}\n')
    assert (result.returncode, result.stdout) == (3, "")
    result = cli("generate", "--prompt-file", "-", "-o", "x%d.png", input="\n \n")
    assert result.returncode == 3 and "no prompts" in result.stderr


def test_names_from_prompts_and_numbers(cli: Cli, tmp_path: Path) -> None:
    result = cli(
        "generate", "-p", "A red boat, at sea!", "-p", "猫", "-o", "{prompt}-{index:03d}.png",
        "--first-index", 7,
    )  # fmt: skip
    assert result.stdout.splitlines() == ["a-red-boat-at-sea-007.png", "猫-008.png"], result.stderr
    result = cli("generate", "-p", "a", "-b", 2, "-o", "{prompt}.png", "--first-index", 2)
    assert result.stdout.splitlines() == ["a-0002.png", "a-0003.png"], result.stderr


def test_measurements_take_no_methods_from_lines(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a", "method": "ar"}\n')
    assert "flags choose what is measured" in refused(
        2, "bench", "--methods", "ar", "--prompt-file", "p.jsonl"
    )
