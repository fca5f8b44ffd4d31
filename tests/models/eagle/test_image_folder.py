"""Images of a folder as training data: their codes, captions and features, and folders that are none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from models.eagle import data, train
from models.eagle.features import load_target, prompt_ids, target_features, with_row_ends
from models.eagle.image_folder import images_of, readable_file
from models.export.checkpoint import ExportError
from tests.e2e import families

CAPTIONS = ("a red boat", "Ein süßer Käfer,\n35mm photo", "b", "the sea at night")
WIDTH, HEIGHT = 64, 48  # 4 x 3 codes
Run = Callable[..., int]


def colours(seed: int, width: int = WIDTH, height: int = HEIGHT) -> Image.Image:
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def write_folder(folder: Path, count: int) -> Path:
    """PNG files of the right size, one JPEG file larger than that."""
    folder.mkdir()
    for number in range(count):
        name = f"{number:03d}"
        if number == 1:
            colours(number, 150, 90).save(folder / f"{name}.jpg", quality=100)
        else:
            colours(number).save(folder / f"{name}.png")
        (folder / f"{name}.txt").write_text(CAPTIONS[number % 4] + "\n", encoding="utf-8")
    (folder / "readme.md").write_text("no image")
    return folder


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return families.chameleon(tmp_path_factory.mktemp("chameleon"))


@pytest.fixture
def run(bundle: Path, tmp_path: Path, build_dir: Path) -> Run:
    """The command on tmp_path/images -> its exit code."""

    def call(*words: object, source: tuple[object, ...] = ()) -> int:
        source = source or ("--image-folder", tmp_path / "images")
        threads = torch.get_num_threads()
        line = (
            "--bundle",
            bundle,
            *source,
            "--out",
            tmp_path / "data",
            "--build",
            build_dir,
            *words,
        )
        code = data.main([str(word) for word in line])
        torch.set_num_threads(threads)
        return code

    return call


def encoded(bundle: Path, image: Image.Image) -> list[int]:
    """The codes by the bundle's module itself."""
    module = torch.jit.load(str(bundle / "image_encoder.pt"))
    module.prepare(torch.empty(0))
    rgb = torch.from_numpy(np.array(image)).float() / 255 * 2 - 1
    with torch.inference_mode():
        found = module.nearest(module.latents(rgb.permute(2, 0, 1)[None].contiguous()))
    return list(found.flatten().tolist())


def test_features_of_encoded_images(
    run: Run, bundle: Path, tmp_path: Path, build_dir: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The target is fed the images' codes behind their captions; a second call adds shards."""
    monkeypatch.setattr(data, "SHARD", 4)
    write_folder(tmp_path / "images", 6)
    assert run("--images", 4) == 0
    (shard,) = data.load_shards(tmp_path / "data")
    codes = shard["codes"].long()
    own = [encoded(bundle, colours(number)) for number in (0, 2, 3)]
    assert codes[[0, 2, 3]].tolist() == own
    assert len({tuple(row) for row in codes.tolist()}) == 4

    model = load_target(bundle)
    captions = (tmp_path / "data/captions.txt").read_text(encoding="utf-8").splitlines()
    assert captions == [" ".join(caption.split()) for caption in CAPTIONS]
    prompts = prompt_ids(model, captions, build_dir)
    features, valid = target_features(model, with_row_ends(model, codes), prompts)
    assert torch.equal(shard["valid"], valid.int())
    torch.testing.assert_close(shard["features"], features.bfloat16())

    assert "only" not in capsys.readouterr().out
    assert run("--images", 7) == 0
    assert "only 6 captions, so fewer images than the 7 of --images" in capsys.readouterr().out
    assert [len(part["codes"]) for part in data.load_shards(tmp_path / "data")] == [4, 2]
    names = (tmp_path / "data/images.txt").read_text().splitlines()
    assert names == ["000.png", "001.jpg", "002.png", "003.png", "004.png", "005.png"]
    words = ["--bundle", bundle, "--data", tmp_path / "data", "--out", tmp_path / "drafter.pt"]
    words += ["--minutes", 0.01, "--held-out", 2, "--batch", 2]
    assert train.main([str(word) for word in words]) == 0
    assert (tmp_path / "drafter.pt").exists()


def test_fits(run: Run, bundle: Path, tmp_path: Path) -> None:
    """Other sizes are scaled by the rules of `encode`."""
    write_folder(tmp_path / "images", 2)
    rows = []
    for fit, flag in (("crop", "--image-folder"), ("stretch", "--pictures")):
        assert run("--fit", fit, source=(flag, tmp_path / "images")) == 0
        (shard,) = data.load_shards(tmp_path / "data")
        rows.append(shard["codes"])
        (tmp_path / "data").rename(tmp_path / fit)
    assert torch.equal(rows[0][0], rows[1][0]) and not torch.equal(rows[0][1], rows[1][1])


def test_metadata(tmp_path: Path) -> None:
    """As `batch` writes it: its order, with captions that need no files."""
    colours(0).save(tmp_path / "b.png")
    colours(1).save(tmp_path / "a.png")
    lines = [
        {"file_name": "b.png", "text": "sea\u2028 boat", "seed": 1},
        {"file_name": "a.png", "text": "b"},
    ]
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (tmp_path / "metadata.jsonl").write_text(content, encoding="utf-8")
    found = images_of(tmp_path, 9)
    assert [image.path.name for image in found] == ["b.png", "a.png"]
    assert [image.caption for image in found] == ["sea boat", "b"]
    assert [image.path.name for image in images_of(tmp_path, 1)] == ["b.png"]
    for line in ('{"file_name": "b.png"}', "[1]", "x", '{"file_name": 1, "text": "a"}'):
        (tmp_path / "metadata.jsonl").write_text(line)
        with pytest.raises(ExportError, match=r"metadata.jsonl:1: expected \{"):
            images_of(tmp_path, 1)
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "../b.png", "text": "a"}')
    with pytest.raises(ExportError, match="is not below"):
        images_of(tmp_path, 1)


def test_folders_below(tmp_path: Path) -> None:
    """As img2dataset lays them out."""
    for number, folder in enumerate(("00001", "00000")):
        write_folder(tmp_path / folder, number + 1)
    found = [str(image.path.relative_to(tmp_path)) for image in images_of(tmp_path, 9)]
    assert found == ["00000/000.png", "00000/001.jpg", "00001/000.png"]


def test_images_of_other_formats(tmp_path: Path) -> None:
    """Turned as EXIF says; what the engine reads stays as it is."""
    image = colours(0, 20, 10)
    exif = image.getexif()
    exif[0x0112] = 6  # a quarter turn
    image.save(tmp_path / "a.tif", exif=exif)
    with Image.open(readable_file(tmp_path / "a.tif", tmp_path / "0.png")) as turned:
        assert turned.size == (10, 20) and turned.format == "PNG"
        assert turned.tobytes() == image.transpose(Image.Transpose.ROTATE_270).tobytes()
    image.convert("CMYK").save(tmp_path / "b.jpg")
    with Image.open(readable_file(tmp_path / "b.jpg", tmp_path / "1.png")) as found:
        assert found.mode == "RGB" and found.size == (20, 10)
    image.save(tmp_path / "c.webp", save_all=True, append_images=[colours(1, 20, 10)])
    assert readable_file(tmp_path / "c.webp", tmp_path / "2.png") == tmp_path / "2.png"
    for name in ("d.png", "d.jpg", "d.webp"):
        image.save(tmp_path / name, exif=exif)
        assert readable_file(tmp_path / name, tmp_path / "3.png") == tmp_path / name


def test_folders_that_are_none(
    run: Run, tmp_path: Path, bare_bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(code: int, words: str, *arguments: object, **source: tuple[object, ...]) -> None:
        assert run(*arguments, **source) == code
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("error: ") and words in error

    folder = tmp_path / "images"
    refused(4, "images: no such folder")
    folder.mkdir()
    refused(4, "images: got no images, expected NAME.png and NAME.txt, or metadata.jsonl")
    (folder / "a.jpg").write_bytes(b"no image")
    refused(4, "a.txt: No such file or directory")
    (folder / "a.txt").write_text(" \n")
    refused(4, "a.txt: got no caption")
    (folder / "a.txt").write_text("a boat")
    refused(4, "lacks image_encoder", "--bundle", bare_bundle)
    assert not (tmp_path / "data").exists()
    refused(3, "a.jpg: cannot be read as an image")
    (folder / "a.jpg").unlink()
    shutil.rmtree(tmp_path / "data")
    (folder / "a.png").write_bytes(b"no image")
    refused(3, "a.png: cannot be read as an image")
    colours(0).save(folder / "a.png")
    assert run() == 0
    (folder / "a.txt").write_text("another boat")
    refused(7, "captions.txt: holds other captions than")
    (tmp_path / "lines.txt").write_text("a boat")
    refused(7, "holds encoded images", source=("--captions", tmp_path / "lines.txt"))
    (tmp_path / "data/images.txt").unlink()
    (folder / "a.txt").write_text("a boat")
    refused(7, "holds generated images")
