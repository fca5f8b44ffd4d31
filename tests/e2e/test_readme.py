"""README.md and the guides: every block of code runs, every link leads somewhere, every table is complete."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from PIL import Image

from models.export.__main__ import main as export
from tests.e2e.documents import (
    ADDRESS,
    DOCUMENTS,
    ROOT,
    Block,
    Workspace,
    anchors,
    read_blocks,
    table_names,
)
from tests.e2e.support import Cli

README = "README.md"
BLOCKS = [block for document in DOCUMENTS for block in read_blocks(document)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
CPP = [block for block in BLOCKS if block.language == "cpp"]
SETUP = ("scripts/setup.sh", "scripts/test.sh")  # their work is done before a test runs
# Programs of others in blocks that are not run.
ELSEWHERE = ("cmake", "curl", "tar", "pip", ".venv/bin/pip")
# Defaults of one rule of cspd, which models/mar/README.md gives.
EXPLAINED = {"--prefill-ratio": {"0.15"}, "--cap": {"100"}}


def name_of(block: Block) -> str:
    return f"{block.document}:{block.line}"


@pytest.fixture
def workspace(tmp_path: Path, build_dir: Path) -> Workspace:
    return Workspace(tmp_path, build_dir)


def require_package(build_dir: Path) -> None:
    if not list((build_dir / "python" / "lamplighter").glob("_native.*.so")):
        pytest.skip("the Python package is not built: Python.h was not found")


def split_server(block: Block) -> tuple[str, str]:
    """The command of a shell block that starts a server, and its other lines."""
    lines = block.text.splitlines()
    servers = [line for line in lines if line.startswith("build/lamplighter serve")]
    assert len(servers) <= 1
    script = "\n".join(line for line in lines if line not in (*servers, *SETUP))
    return "".join(servers), script.replace("scripts/run.sh", "build/lamplighter")


def test_readme_is_short() -> None:
    lines = (ROOT / README).read_text().splitlines()
    assert len(lines) <= 120
    long = [f"{number}: {len(line)}" for number, line in enumerate(lines, 1) if len(line) > 120]
    assert not long


def test_blocks_have_a_language_and_scripts_are_there() -> None:
    assert {block.language for block in BLOCKS} == {"sh", "python", "cpp"}
    assert len(PYTHON) >= 5 and CPP
    for document in DOCUMENTS:
        text = (ROOT / document).read_text()
        # Code that is only indented would not be tested, nor a block that the reader of blocks does not see.
        assert not re.search(r"^\n {4,}\S", text, re.MULTILINE), document
        assert 2 * len(read_blocks(document)) == len(re.findall(r"^```", text, re.MULTILINE)), (
            document
        )
    for script in {word for block in BLOCKS for word in re.findall(r"scripts/\w+\.sh", block.text)}:
        assert os.access(ROOT / script, os.X_OK), script


@pytest.mark.parametrize("document", DOCUMENTS)
def test_shell_blocks_run(document: str, workspace: Workspace, build_dir: Path) -> None:
    """All of a document, in order, in one folder: later blocks read files of earlier ones."""
    address = ADDRESS
    with ExitStack() as servers:
        for block in read_blocks(document):
            if block.language != "sh" or block.not_run:
                continue
            server, script = split_server(block)
            if "build/python" in script:
                require_package(build_dir)
            if server:
                address = servers.enter_context(workspace.server(server))
            result = workspace.run(
                "bash", "-euo", "pipefail", "-c", script.replace(ADDRESS, address)
            )
            assert result.returncode == 0, f"{name_of(block)}\n{result.stderr}{result.stdout}"


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.not_run], ids=lambda block: name_of(block)
)
def test_flags_of_commands_that_cannot_run(
    block: Block, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They fail where a file is missing, not at their flags."""
    monkeypatch.chdir(workspace.folder)
    for command in block.commands:
        if command[0] == ".venv/bin/lamplighter-export":
            assert export(command[1:]) != 0  # wrong flags exit
        elif Path(command[0]).name == "lamplighter":
            result = workspace.run("build/lamplighter", *command[1:], LAMPLIGHTER_MODEL="none")
            assert result.returncode in (3, 4), f"{' '.join(command)}\n{result.stderr}"
        else:
            assert command[0] in ELSEWHERE or (ROOT / command[0]).is_file(), command


@pytest.mark.parametrize("block", PYTHON, ids=name_of)
def test_python_blocks_run(block: Block, workspace: Workspace, build_dir: Path) -> None:
    if "lamplighter" in block.text:
        require_package(build_dir)
    if block.needs and importlib.util.find_spec(block.needs) is None:
        pytest.skip(f"no {block.needs}")
    text = block.text
    with ExitStack() as servers:
        if ADDRESS in text:
            server = servers.enter_context(workspace.server("build/lamplighter serve"))
            text = text.replace(ADDRESS, server)
        result = workspace.run(".venv/bin/python", "-c", text, PYTHONPATH="build/python")
    assert result.returncode == 0, result.stderr
    for name in re.findall(r"\"(\w+\.png)\"", text):
        Image.open(workspace.folder / name).verify()


@pytest.mark.parametrize("block", CPP, ids=name_of)
def test_cpp_blocks_compile_and_run(block: Block, workspace: Workspace, build_dir: Path) -> None:
    (workspace.folder / "example.cpp").write_text(block.text)
    compiled = workspace.run(
        "c++", "-std=c++17", "-Wall", "-Werror", f"-I{ROOT}/include", f"-I{build_dir}/generated", "-c", "example.cpp", "-o", "example.o"
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    library = build_dir / "liblamplighter.so"
    linked = workspace.run(
        "c++", "example.o", str(library), f"-Wl,-rpath,{library.parent},--allow-shlib-undefined", "-o", "example"
    )  # fmt: skip
    assert linked.returncode == 0, linked.stderr
    result = workspace.run("./example")
    assert result.returncode == 0, result.stderr
    Image.open(workspace.folder / "boat.png").verify()


@pytest.mark.parametrize(
    ("document", "shown", "output"),
    [
        (README, "models/demo/growth.png", "growth.png"),
        ("tools/README.md", "models/demo/acceptance.png", "map.png"),
    ],
)
def test_images_are_what_their_commands_generate(
    workspace: Workspace, document: str, shown: str, output: str
) -> None:
    """Other processors sample other tokens in bf16, so that colours are the same, and S about the same."""
    text = (ROOT / document).read_text()
    assert shown in text
    (block,) = [b for b in read_blocks(document) if re.search(rf" {output}\b", b.text)]
    result = workspace.run(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        f"{block.text.rstrip()} --json --quiet".replace(" -v ", " "),
    )
    assert result.returncode == 0, result.stderr
    images = [
        Image.open(folder / name).convert("RGB")
        for folder, name in ((workspace.folder, output), (ROOT, shown))
    ]
    assert images[0].size == images[1].size
    colours = [token_colours(image) for image in images]
    assert colours[0] == colours[1] and len(colours[0]) >= 6
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    tokens, passes = (sum(line[key] for line in lines) for key in ("tokens", "target_passes"))
    assert float(re.findall(r"\(S = ([\d.]+)\)", text)[0]) == pytest.approx(
        tokens / passes, rel=0.2
    )


def token_colours(image: Image.Image) -> set[tuple[int, int, int]]:
    """The colours of the legend: wide bars of one colour in the lower left."""
    legend = image.crop((0, image.height - 100, image.width, image.height))
    found = legend.getcolors(1 << 20)
    assert found is not None
    return {colour for count, colour in found if count >= 48 * 24 and colour != (255, 255, 255)}  # type: ignore[misc]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\(([^)\s]+)\)", path.read_text())
    for link in links:
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def words_of_error(cli: Cli, *arguments: object) -> set[str]:
    """The words that an error expects, as in `got "x", expected ar, eagle or sjd`."""
    result = cli("generate", "-p", "a boat", *arguments)
    assert result.returncode == 2
    expected = result.stderr.split("expected ", 1)[1].split(";")[0].split("(help")[0]
    return set(re.findall(r"[\w+-]+", expected)) - {"or", "did", "you", "mean"}


def test_the_guide_lists_all_methods_and_rules(cli: Cli) -> None:
    listed = words_of_error(cli, "--method", "nothing")
    assert {"ar", "sjd", "lantern++"} < listed
    assert set(table_names("tools/README.md", "## Methods")) == listed - {"auto"}
    rules = words_of_error(cli, "--method", "sjd", "--rule", "nothing")
    assert {"exact", "cool"} < rules
    assert set(table_names("tools/README.md", "## Acceptance rules")) == rules


def test_the_guide_lists_all_options(cli: Cli) -> None:
    """The table's flags are flags of `generate`; its words belong to `bench --methods`."""
    flags = table_names("tools/README.md", "## Options")
    result = subprocess.CompletedProcess[str]([], 0)
    for flag in dict.fromkeys(flags):
        result = cli("generate", "-p", "a boat", flag)
        assert "expected" in result.stderr and "unknown" not in result.stderr, flag
    result = cli("bench", "--methods", "sjd:nothing=1")
    words = set(re.findall(r"[\w-]+", result.stderr.split("expected ", 1)[1].split("(help")[0])) - {
        "or"
    }
    shown = set(table_names("tools/README.md", "## Options", 1))
    same = {flag[2:] for flag in flags if flag[2:] in words}
    assert words == shown | same


def test_the_guide_has_the_defaults_of_options(cli: Cli) -> None:
    """Every number in the column of defaults is one of `--help-all`, and every number there is in the guide."""
    shown = " ".join(cli("generate", "--help-all").stdout.split())
    text = (ROOT / "tools/README.md").read_text().split("\n## Options\n", 1)[1].split("\n## ", 1)[0]
    numbers = re.compile(r"(?<![\w-])\d+(?:\.\d+)?")
    guide: dict[str, set[str]] = {}
    for row in re.findall(r"^\| `--.*", text, re.MULTILINE):
        _, flags, _, default, *_ = row.split("|")
        for flag in (names := re.findall(r"`(--[\w-]+)`", flags)):
            guide.setdefault(flag, set()).update(numbers.findall(default))
        of_program = {number for flag in names for number in defaults(shown, flag, numbers)}
        assert set(numbers.findall(default)) <= of_program, row
    assert len(guide) > 30
    for flag, listed in guide.items():
        if missing := defaults(shown, flag, numbers) - listed - EXPLAINED.get(flag, set()):
            raise AssertionError(f"{flag}: {missing}")


def defaults(shown: str, flag: str, numbers: re.Pattern[str]) -> set[str]:
    """The numbers in the default that `--help-all` names for a flag."""
    found = re.search(rf" {flag} [A-Z|]+ .*?\[default: (.*?)\]", shown)
    assert found, flag
    return set(numbers.findall(found[1]))
