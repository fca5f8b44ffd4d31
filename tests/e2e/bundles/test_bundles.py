"""inspect and check; bundles that are partial, missing or broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.support import Cli, Refused, edit_manifest, replace_file


@pytest.fixture
def copy(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle to break."""
    folder = tmp_path_factory.mktemp("copy") / "bundle"
    shutil.copytree(tiny_bundle, folder)
    return folder


def remove_module(folder: Path, *names: str) -> None:
    def change(manifest: dict) -> None:  # type: ignore[type-arg]
        for name in names:
            manifest["files"].pop(manifest["modules"].pop(name)["file"])
        records = manifest["golden"]["records"]
        manifest["golden"]["records"] = [r for r in records if r["module"] not in names]
        if "image_decoder" in names:
            manifest.pop("decoder")
        if "target" in names:
            manifest.pop("target")

    edit_manifest(folder, change)


def test_inspect(cli: Cli, tiny_bundle: Path) -> None:
    text = cli("inspect", tiny_bundle, model=None).stdout
    for words in ("llamagen-t2i", "32x32 (4x4 tokens)", "target.pt, float32", "methods", "top-k"):
        assert words in text
    report = json.loads(cli("inspect", "--json").stdout)
    assert report["methods"][0] == "ar" and report["missing_for_generation"] == []
    others = ("eagle", "eagle-2", "eagle-3", "lantern", "lantern++")
    assert set(report["missing"]) >= set(others) and not set(report["methods"]) & set(others)
    assert report["missing"].pop("cspd") == ["tokens.kind: continuous"]
    assert set(map(tuple, report["missing"].values())) == {("drafters",)}
    assert ", ".join(others) in text and "need a drafter" in text
    assert report["manifest"] == json.loads((tiny_bundle / "manifest.json").read_text())


HOSTILE = "a\u202eb\u2066\x1b[2J\nc"


@pytest.fixture
def hostile(copy: Path) -> Path:
    """A bundle whose texts turn the direction of what stands behind them, and clear terminals."""
    fields = ("name", "family", "source", "licence")
    edit_manifest(copy, lambda manifest: manifest.update({field: HOSTILE for field in fields}))
    return copy


def test_inspect_shows_hostile_names_in_order(cli: Cli, hostile: Path) -> None:
    lines = cli("inspect", hostile, model=None).stdout.splitlines()
    assert sum(line.count("a\\u202eb\\u2066\\x1b[2J\\nc") for line in lines) == 4
    assert all(line.isprintable() for line in lines)
    printed = cli("inspect", "--json", hostile, model=None).stdout
    assert all(line.isprintable() for line in printed.splitlines())
    assert json.loads(printed)["manifest"]["name"] == HOSTILE


def test_hostile_names_in_what_commands_write(cli: Cli, hostile: Path, tmp_path: Path) -> None:
    """Results, reports, pages and metadata have the name escaped, whatever program shows them."""
    image, out = tmp_path / "a.png", tmp_path / "out"
    (tmp_path / "captions.txt").write_text("a boat\n")
    flags = ("--export-json", "b.json", "--export-html", "b.html", "--export-markdown", "b.md")
    texts = [
        cli("generate", "-p", "a boat", "-o", image, "--json", model=hostile).stdout,
        cli("batch", tmp_path / "captions.txt", "-o", out, model=hostile).stderr,
        cli("bench", "-p", "a boat", "--methods", "ar", *flags, cwd=tmp_path, model=hostile).stdout,
    ]
    files = [out / "run.json", out / "index.html", *(tmp_path / flag for flag in flags[1::2])]
    texts += [file.read_text() for file in files]
    with Image.open(image) as opened:
        texts += opened.text.values()
    for text in texts:
        assert not {"\u202e", "\u2066", "\x1b"} & set(text)
    assert sum("a\\u202eb" in text.replace("\\\\", "\\") for text in texts) >= 6


def test_check(ran: Cli, tiny_bundle: Path) -> None:
    result = ran("check", tiny_bundle, model=None)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("checksums match: ") and len(lines) == 4
    for line, module in zip(lines[1:], ("image_decoder", "target", "text_encoder"), strict=True):
        assert line.startswith(f"{module}: ok, ") and "max |difference|" in line


def test_check_of_the_shipped_bundle(ran: Cli, bundle: Path) -> None:
    ran("check", bundle, model=None)


def test_check_finds_other_results(cli: Cli, copy: Path) -> None:
    def change(manifest: dict) -> None:  # type: ignore[type-arg]
        for record in manifest["golden"]["records"]:
            if record["method"] == "logits":
                record["tolerance"] = 0 if record["tolerance"] == 0 else 1e-300
                record["outputs"] = record["inputs"]  # of another shape

    edit_manifest(copy, change)
    result = cli("check", copy)
    assert result.returncode == 4
    assert "target: FAILED" in result.stdout and "text_encoder: ok" in result.stdout
    assert (
        result.stderr.count("\n") == 1 and "differ from the recorded ones: target" in result.stderr
    )


def test_partial_bundles(cli: Cli, ran: Cli, refused: Refused, copy: Path, tmp_path: Path) -> None:
    assert cli("generate", "-p", "a", "--save-codes", "codes.json").returncode == 0
    remove_module(copy, "image_decoder")
    words = refused(2, "generate", "-p", "a", "-o", "x.png", model=copy)
    assert "--output: got 'x.png', expected none" in words and "has no image decoder" in words
    assert "image_decoder" in refused(4, "decode", "codes.json", "-o", "x.png", model=copy)
    assert "missing for images    modules.image_decoder" in cli("inspect", copy).stdout
    report = json.loads(cli("inspect", "--json", copy).stdout)
    assert report["missing_for_generation"] == ["modules.image_decoder"]
    assert "sjd" in report["methods"] and "ar" not in report["missing"]
    ran("generate", "-p", "a", "--save-codes", "same.json", model=copy)
    saved = [
        json.loads((tmp_path / f"{n}.json").read_text())["images"][0] for n in ("codes", "same")
    ]
    assert saved[0]["codes"] == saved[1]["codes"]
    assert cli("check", copy).returncode == 0


def test_decoder_alone_decodes(
    cli: Cli, ran: Cli, refused: Refused, copy: Path, tmp_path: Path
) -> None:
    assert cli("generate", "-p", "a", "-o", "a.png", "--save-codes", "codes.json").returncode == 0
    remove_module(copy, "target", "text_encoder")
    assert "lacks" in refused(4, "generate", "-p", "a", "-o", "x.png", model=copy)
    ran("decode", "codes.json", "-o", "b.png", model=copy)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert cli("check", copy).returncode == 0


def test_missing_bundles(refused: Refused, tmp_path: Path) -> None:
    assert "manifest.json" in refused(4, "generate", "-p", "a", model=tmp_path)
    assert "none" in refused(4, "inspect", "none")
    assert "none" in refused(4, "check", "none")


def test_missing_and_damaged_files(refused: Refused, copy: Path) -> None:
    content = (copy / "target.pt").read_bytes()
    flipped = bytearray(content)
    flipped[len(flipped) // 2] ^= 1
    (copy / "target.pt").write_bytes(flipped)
    for command in (("generate", "-p", "a", "-o", "x.png"), ("check",)):
        assert "target.pt" in refused(4, *command, model=copy)
    (copy / "target.pt").write_bytes(content[:-1])
    assert "target.pt" in refused(4, "bench", "--skip-checksums", model=copy)
    (copy / "target.pt").unlink()
    assert "target.pt" in refused(4, "check", model=copy)


def test_inspect_looks_at_damaged_bundles(cli: Cli, copy: Path) -> None:
    whole = cli("inspect", model=copy).stdout
    content = bytearray((copy / "target.pt").read_bytes())
    content[-1] ^= 1
    (copy / "target.pt").write_bytes(content)
    (copy / "spiece.model").unlink()
    result = cli("inspect", model=copy)
    assert (result.returncode, result.stdout) == (4, whole)
    tokenizer, target, end = result.stderr.splitlines()
    assert "spiece.model: No such file" in tokenizer and "target.pt: got SHA-256" in target
    assert "2 of " in end and "are damaged or missing" in end
    report = cli("inspect", "--json", "--skip-checksums", model=copy)
    assert report.returncode == 4 and list(json.loads(report.stdout)["damage"]) == ["spiece.model"]


@pytest.mark.parametrize(
    "name", ["target.pt", "text_encoder.pt", "image_decoder.pt", "spiece.model"]
)
def test_files_of_another_kind(refused: Refused, copy: Path, name: str) -> None:
    for content in (b"", b"<html>not found</html>", b"PK\x03\x04 and no more"):
        replace_file(copy, name, content)
        assert name in refused(4, "generate", "-p", "a", "-o", "x.png", model=copy)


def test_archives_truncated_anywhere(refused: Refused, copy: Path) -> None:
    content = (copy / "target.pt").read_bytes()
    for cut in range(64):
        replace_file(copy, "target.pt", content[: len(content) * cut // 64])
        assert "target" in refused(4, "generate", "-p", "a", "-o", "x.png", model=copy)


def test_archives_with_flipped_bytes(cli: Cli, copy: Path, tmp_path: Path) -> None:
    content = (copy / "target.pt").read_bytes()
    for number in range(16):
        flipped = bytearray(content)
        flipped[(len(flipped) - 1) * number // 15] ^= 0xFF
        replace_file(copy, "target.pt", bytes(flipped))
        result = cli("generate", "-p", "a", "-o", f"{number}.png", "-q", model=copy)
        # Names and padding of an archive have no checksum, so some flips have no effect.
        assert result.returncode in (0, 4), (number, result.returncode, result.stderr)
        assert result.stderr.count("\n") == (1 if result.returncode else 0)


def test_manifests_truncated_anywhere(refused: Refused, copy: Path) -> None:
    content = (copy / "manifest.json").read_bytes().rstrip()
    for cut in range(16):
        (copy / "manifest.json").write_bytes(content[: len(content) * cut // 16])
        assert "manifest.json" in refused(4, "inspect", model=copy)


def test_manifest_with_paths_outside_the_bundle(refused: Refused, copy: Path) -> None:
    outside = copy.parent / "outside.pt"
    outside.write_bytes((copy / "target.pt").read_bytes())

    def change(manifest: dict) -> None:  # type: ignore[type-arg]
        manifest["files"]["../outside.pt"] = manifest["files"].pop("target.pt")
        manifest["modules"]["target"]["file"] = "../outside.pt"

    edit_manifest(copy, change)
    assert "outside.pt" in refused(4, "inspect", model=copy)


@pytest.mark.parametrize(
    ("field", "value", "methods"),
    [
        ("features", 1, ("flash", "flash+sjd", "eagle", "ar")),
        ("features", 64, ("flash", "eagle")),
        ("hidden", 1, ("ar", "medusa", "refine")),
        ("head", 39, ("ar", "flash")),
    ],
)
def test_widths_that_the_archive_does_not_have(
    refused: Refused, drafter_bundle: Path, tmp_path: Path, field: str, value: int, methods: tuple[str, ...]
) -> None:  # fmt: skip
    """The archives decide: the manifest's field is at fault, whatever network reads the width."""
    folder = tmp_path / "bundle"
    shutil.copytree(drafter_bundle, folder)
    edit_manifest(folder, lambda manifest: manifest["target"].update({field: value}))
    for method in methods:
        line = refused(4, "generate", "-p", "a", "-o", "a.png", "--method", method, model=folder)
        assert f"target.{field} {value}" in line, (method, line)


@pytest.mark.parametrize(
    ("drafter", "method"), [("heads", "medusa"), ("steps", "mlp"), ("ahead", "flash")]
)
def test_heads_that_the_archive_does_not_have(
    refused: Refused, drafter_bundle: Path, tmp_path: Path, drafter: str, method: str
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(drafter_bundle, folder)
    edit_manifest(folder, lambda manifest: manifest["drafters"][drafter].update({"heads": 12}))
    words = ("--method", method, "--tree", "chain-12")
    line = refused(4, "generate", "-p", "a", "-o", "a.png", *words, model=folder)
    assert f"drafter {drafter}: got " in line and "the manifest says heads 12" in line


@pytest.mark.parametrize(("field", "value"), [("kv_heads", 1), ("head_dim", 32)])
@pytest.mark.parametrize(("drafter", "method"), [("main", "eagle"), ("inner", "eagle-3")])
def test_caches_of_drafters_that_the_archive_does_not_fit(
    refused: Refused, drafter_bundle: Path, tmp_path: Path, drafter: str, method: str, field: str,
    value: int,
) -> None:  # fmt: skip
    folder = tmp_path / "bundle"
    shutil.copytree(drafter_bundle, folder)
    edit_manifest(folder, lambda manifest: manifest["drafters"][drafter].update({field: value}))
    line = refused(4, "generate", "-p", "a", "-o", "a.png", "--method", method, model=folder)
    assert f"; check drafters.{drafter}.{field} in manifest.json" in line


def test_calls_that_fail_name_fields(
    refused: Refused, class_bundle: Path, drafter_bundle: Path, tmp_path: Path
) -> None:
    """Torch's messages know no manifest: the fields that the call depends on are named behind them."""
    folder = tmp_path / "classes"
    shutil.copytree(class_bundle, folder)
    edit_manifest(folder, lambda manifest: manifest["prompt"].update({"classes": 20}))
    words = ("generate", "-o", "a.png")
    assert "prompt (classes" in refused(4, *words, "--class", 15, model=folder)
    folder = tmp_path / "queries"
    shutil.copytree(drafter_bundle, folder)
    edit_manifest(folder, lambda manifest: manifest["drafters"]["ahead"].update({"queries": 3}))
    line = refused(4, *words, "-p", "a", "--method", "flash", model=folder)
    assert "check drafters.ahead" in line
