"""The figures of bench and generate as SVG and PDF."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

from tests.e2e.support import Cli, Refused

SVG = "{http://www.w3.org/2000/svg}"
METHODS = ("--methods", "eagle:tree=chain-2", "-p", "a <red> & 'blue' hill", "-p", "a lake", "-q")
NAMES = ("acceptance-map", "compression", "speedup", "stages")


def texts(path: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(path).iter(SVG + "text")]


def joined(lines: list[str]) -> str:
    """Words without blanks: where lines end depends on the width."""
    return "".join(lines).replace(" ", "")


def objects(pdf: bytes) -> list[bytes]:
    """The objects of a PDF file, from the offsets in its table."""
    table = int(pdf[pdf.rindex(b"startxref") :].split()[1])
    entries = re.findall(rb"(\d{10}) \d{5} n \n", pdf[table:])
    found = [pdf[int(entry) :] for entry in entries]
    assert all(text.startswith(b"%d 0 obj\n" % (i + 1)) for i, text in enumerate(found))
    return [text[: text.index(b"endobj\n")] for text in found]


def pdf_texts(pdf: bytes) -> list[str]:
    packed = objects(pdf)[3].split(b"stream\n", 1)[1]
    operators = zlib.decompressobj().decompress(packed).decode("cp1252")
    found = re.findall(r"\(((?:[^\\()]|\\.)*)\) Tj", operators)
    return [re.sub(r"\\(.)", r"\1", text) for text in found]


def test_bench_writes_figures(ran: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    ran("bench", *METHODS, "--export-svg", "new/figures", model=drafter_bundle)
    folder = tmp_path / "new" / "figures"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        name + ending for name in NAMES for ending in (".svg", ".pdf")
    )
    for name in NAMES:
        lines = texts(folder / f"{name}.svg")
        words = joined(lines)
        assert "eagle:tree=chain-2" in words and "Torch" in words, name
        # The command, without outputs.
        assert "lamplighterbench--methodseagle:tree=chain-2--prompt'a<red>&" in words, name
        assert "--export-svg" not in words, name
        assert joined(pdf_texts((folder / f"{name}.pdf").read_bytes())) == words, name
    numbers = [text for text in texts(folder / "speedup.svg") if re.match(r"\d+\.\d\d( |$)", text)]
    assert len(numbers) == 2 and numbers[0] == "1.00"  # ar, eagle
    images = list(ElementTree.parse(folder / "acceptance-map.svg").iter(SVG + "image"))
    assert len(images) == 4  # two captions, two methods


def test_files_that_exist_are_kept(
    ran: Cli, refused: Refused, drafter_bundle: Path, tmp_path: Path
) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "speedup.pdf").write_text("kept")
    given = ("bench", *METHODS, "--export-svg", "figures")
    assert "speedup.pdf" in refused(7, *given, model=drafter_bundle)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["speedup.pdf"]
    ran(*given, "--overwrite", model=drafter_bundle)
    assert (tmp_path / "figures" / "speedup.pdf").read_bytes().startswith(b"%PDF-")


def test_folders_that_cannot_be(refused: Refused, drafter_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    given = ("bench", *METHODS, "--export-svg")
    assert "expected a folder" in refused(7, *given, "file", model=drafter_bundle)
    assert "expected a folder" in refused(7, *given, "file/below", model=drafter_bundle)
    # Nothing is created for a run that is refused.
    refused(2, *given, "figures", "--repeats", 0, model=drafter_bundle)
    assert not (tmp_path / "figures").exists()
    twice = (*given, "f", "--export-json", "f/speedup.svg")
    assert "speedup.svg twice" in refused(2, *twice, model=drafter_bundle)
    assert "--export-svg" in refused(
        2, "bench", "--startup", "--export-svg", "f", model=drafter_bundle
    )


def test_generate_writes_the_format_of_the_name(
    ran: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    ran(
        "generate", "-p", "a", "-o", "x.png", "-q", "--method", "eagle", "--tree", "chain-2",
        "--acceptance-map", "map.SVG", "--growth", "growth.pdf",
        model=drafter_bundle,
    )  # fmt: skip
    assert "targetpass" in joined(texts(tmp_path / "map.SVG"))
    pdf = (tmp_path / "growth.pdf").read_bytes()
    assert len([text for text in objects(pdf) if b"/Subtype /Image" in text]) == 6
    assert "eaglechain-2:" in joined(pdf_texts(pdf))
