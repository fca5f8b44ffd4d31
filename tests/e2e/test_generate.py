"""Generating images from the command line: outputs, seeds, batches, metadata."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.support import SIDE, Cli, pixels


def test_generates_an_image(cli: Cli, bundle: Path, tmp_path: Path) -> None:
    result = cli("generate", "-p", "a red boat on the sea", "-o", "boat.png", model=bundle)
    assert (result.returncode, result.stdout) == (0, "boat.png\n"), result.stderr
    grid = json.loads((bundle / "manifest.json").read_text())["grids"][0]
    with Image.open(tmp_path / "boat.png") as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        assert image.size == (grid["width"], grid["height"])
    assert [path.name for path in tmp_path.iterdir()] == ["boat.png"]


def test_equal_runs_give_equal_bytes(cli: Cli, bundle: Path, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        assert cli("generate", "-p", "a tree", "-s", 7, "-o", name, model=bundle).returncode == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_batch_size_and_threads_change_nothing(
    ran: Cli, bundle: Path, tmp_path: Path, dtype: str
) -> None:
    for size, threads in ((1, 1), (4, 1), (3, 2)):
        done = ran(
            "generate", "-p", "a tree", "-p", "a white house in the snow", "-b", 2, "-o", f"{size}/",
            "--batch-size", size, "--threads", threads, "--dtype", dtype, model=bundle,
        )  # fmt: skip
        assert done.stdout.split() == [f"{size}/000{number}.png" for number in range(4)]
    for number in range(4):
        first = (tmp_path / f"1/000{number}.png").read_bytes()
        assert (tmp_path / f"4/000{number}.png").read_bytes() == first
        assert (tmp_path / f"3/000{number}.png").read_bytes() == first


def test_images_of_a_mixed_batch_equal_images_generated_alone(ran: Cli, tmp_path: Path) -> None:
    requests = [
        {"prompt": "a white lighthouse on the coast at dusk", "cfg_scale": 5},
        {"prompt": "a", "cfg_scale": 1, "temperature": 0},
        {"prompt": "a red boat", "cfg_scale": 3, "cfg_interval": 4, "top_k": 5},
        {"prompt": "a very small house far away in the hills", "cfg_scale": 0.5, "top_p": 0.9},
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, requests)))
    for size in (1, 4):
        ran("generate", "--prompt-file", "p.jsonl", "-o", f"{size}/", "--batch-size", size)
    for number in range(len(requests)):
        alone = (tmp_path / f"1/000{number}.png").read_bytes()
        assert (tmp_path / f"4/000{number}.png").read_bytes() == alone


def test_guidance_up_to_the_last_token_is_full_guidance(ran: Cli, tmp_path: Path) -> None:
    for interval in (-1, 2**63 - 1):
        ran("generate", "-p", "a", "--cfg-interval", interval, "-o", f"{interval}.png")
    assert pixels(tmp_path / "-1.png") == pixels(tmp_path / f"{2**63 - 1}.png")


def test_image_i_uses_seed_plus_i(cli: Cli, tmp_path: Path) -> None:
    assert (
        cli(
            "generate", "-p", "a", "-p", "b", "-b", 2, "-s", 5, "-o", "{index}-{seed}.png"
        ).returncode
        == 0
    )
    assert {p.name for p in tmp_path.iterdir()} == {"0-5.png", "1-6.png", "2-7.png", "3-8.png"}
    assert cli("generate", "-p", "b", "-s", 8, "-o", "alone.png").returncode == 0
    assert (tmp_path / "alone.png").read_bytes() == (tmp_path / "3-8.png").read_bytes()


def test_seeds_wrap_at_64_bits(cli: Cli, tmp_path: Path) -> None:
    assert cli("generate", "-p", "a", "-b", 2, "-s", 2**64 - 1, "-o", "{seed}.png").returncode == 0
    assert {p.name for p in tmp_path.iterdir()} == {f"{2**64 - 1}.png", "0.png"}


def test_random_seed_is_printed_and_differs(cli: Cli, tmp_path: Path) -> None:
    seeds = set()
    for number in range(3):
        result = cli("generate", "-p", "a", "-s", -1, "-o", f"{number}.png")
        assert result.returncode == 0
        first = result.stderr.splitlines()[0].split()
        assert first[0] == "seed"
        with Image.open(tmp_path / f"{number}.png") as image:
            assert json.loads(image.text["lamplighter"])["seed"] == int(first[1])
        seeds.add(first[1])
    assert len(seeds) > 1


def test_output_patterns(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for pattern, names in {
        "x-%04d.png": ["x-0000.png", "x-0001.png"],
        "%d%%.png": ["0%.png", "1%.png"],
        "%3d.png": ["  0.png", "  1.png"],
        "100%.png": ["100%-0000.png", "100%-0001.png"],
        "plain.png": ["plain-0000.png", "plain-0001.png"],
        "there": ["there/0000.png", "there/0001.png"],
        "new/deep/": ["new/deep/0000.png", "new/deep/0001.png"],
    }.items():
        result = cli("generate", "-p", "a", "-b", 2, "-o", pattern)
        assert result.stdout.splitlines() == names, result.stderr
        assert all((tmp_path / name).is_file() for name in names)


def test_default_output_is_not_replaced_unasked(cli: Cli, tmp_path: Path) -> None:
    assert cli("generate", "-p", "a").stdout == "output.png\n"
    before = (tmp_path / "output.png").read_bytes()
    refused = cli("generate", "-p", "b", "-s", 1)
    assert refused.returncode == 7 and "it exists; --overwrite replaces it" in refused.stderr
    assert (tmp_path / "output.png").read_bytes() == before
    assert cli("generate", "-p", "b", "-s", 1, "--overwrite").returncode == 0
    assert (tmp_path / "output.png").read_bytes() != before


@pytest.mark.parametrize(
    "prompt", ["-x --y", "[a, b]", "%s {seed}", "a\nb\tc", "</s> <extra_id_3>", "=", "ﬁ 猫 😀"]
)
def test_any_text_is_a_prompt(ran: Cli, tmp_path: Path, prompt: str) -> None:
    result = ran("generate", "-p", prompt, "--json")
    assert json.loads(result.stdout)["prompt"] == prompt
    with Image.open(tmp_path / "output.png") as image:
        assert json.loads(image.text["lamplighter"])["prompt"] == prompt
        assert image.text["parameters"].startswith(prompt + "\nSteps: 16, Sampler: ar, CFG scale: ")


def test_metadata(cli: Cli, tmp_path: Path) -> None:
    flags = (
        "--temperature",
        0.9,
        "--top-k",
        7,
        "--top-p",
        0.95,
        "--cfg-scale",
        3,
        "--dtype",
        "fp32",
    )
    assert cli("generate", "-p", "a cat", *flags, "-o", "a.png").returncode == 0
    with Image.open(tmp_path / "a.png") as image:
        fields = json.loads(image.text["lamplighter"])
        assert set(image.text) == {"parameters", "lamplighter"}
        text = image.text["parameters"]
    assert fields["temperature"] == 0.9 and fields["top_p"] == 0.95 and fields["cfg_scale"] == 3
    assert (fields["top_k"], fields["tokens"], fields["target_passes"]) == (7, 16, 16)
    assert (fields["device"], fields["dtype"], fields["method"]) == ("cpu", "fp32", "ar")
    assert text.split("\n")[1] == (
        f"Steps: 16, Sampler: ar, CFG scale: 3.0, Seed: 42, Size: {SIDE}x{SIDE}, Model: bundle, "
        f"Temperature: 0.9, Top-k: 7, Top-p: 0.95, Version: lamplighter {fields['version']}"
    )
    assert cli("generate", "-p", "a cat", *flags, "-o", "b.png", "--no-metadata").returncode == 0
    with Image.open(tmp_path / "b.png") as image:
        assert not image.text
    assert pixels(tmp_path / "a.png") == pixels(tmp_path / "b.png")


def test_lines_of_json_may_be_indented(cli: Cli) -> None:
    result = cli(
        "generate", "--prompt-file", "-", "-o", "a.png", "--json", input=' {"prompt": "x"}'
    )
    assert json.loads(result.stdout)["prompt"] == "x"


def test_config_file_gives_flags(ran: Cli, tmp_path: Path) -> None:
    config = {
        "cfg_scale": 2.5,
        "top-k": 3,
        "prompt": ["from", "file"],
        "seed": 4,
        "no_metadata": True,
    }
    (tmp_path / "c.json").write_text(json.dumps(config))
    result = ran("generate", "--config", "c.json", "-s", 5, "-o", "%d.png", "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["prompt"], second["prompt"]) == ("from", "file")
    assert (first["seed"], first["cfg_scale"], first["top_k"]) == (5, 2.5, 3)
    with Image.open(tmp_path / "0.png") as image:
        assert not image.text


def test_codes_and_contact_sheet(cli: Cli, ran: Cli, tmp_path: Path) -> None:
    ran("generate", "-p", "a", "-b", 3, "-o", "%d.png", "--save-codes", "codes.json",
                 "--grid", "sheet.png")  # fmt: skip
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (2 * SIDE + 2, 2 * SIDE + 2)
        box = (SIDE + 2, 0, 2 * SIDE + 2, SIDE)
        assert sheet.crop(box).tobytes() == pixels(tmp_path / "1.png")
        assert sheet.getpixel((2 * SIDE, 2 * SIDE)) == (255, 255, 255)
    images = json.loads((tmp_path / "codes.json").read_text())["images"]
    assert [len(image["codes"]) for image in images] == [16, 16, 16]
    decoded = cli("decode", "codes.json", "-o", "again-%d.png")
    assert decoded.stdout.splitlines() == [f"again-{i}.png" for i in range(3)], decoded.stderr
    for number in range(3):
        assert (tmp_path / f"{number}.png").read_bytes() == (
            tmp_path / f"again-{number}.png"
        ).read_bytes()


def test_greedy_images_do_not_depend_on_the_seed(cli: Cli, tmp_path: Path) -> None:
    for seed in (1, 2):
        assert (
            cli(
                "generate", "-p", "a", "--temperature", 0, "-s", seed, "-o", f"{seed}.png"
            ).returncode
            == 0
        )
    assert pixels(tmp_path / "1.png") == pixels(tmp_path / "2.png")


def test_classes(cli: Cli, ran: Cli, class_bundle: Path, tmp_path: Path) -> None:
    result = ran("generate", "--class", 3, "--json", model=class_bundle)
    assert json.loads(result.stdout)["class"] == 3
    with Image.open(tmp_path / "output.png") as image:
        assert image.text["parameters"].startswith("class 3\n")
    (tmp_path / "c.jsonl").write_text('{"class": 1}\n{"class": 2}\n')
    lines = cli(
        "generate", "--prompt-file", "c.jsonl", "-o", "%d.png", "--json", model=class_bundle
    )
    assert [json.loads(line)["class"] for line in lines.stdout.splitlines()] == [1, 2]


def test_quiet_prints_nothing_and_verbose_prints_more(cli: Cli) -> None:
    quiet = cli("generate", "-p", "a", "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "output.png\n", "")
    plain = cli("generate", "-p", "a", "--overwrite")
    assert len(plain.stderr.splitlines()) == 1 and "\r" not in plain.stderr
    verbose = cli("generate", "-p", "a", "--overwrite", "-v", "--device", "cpu")
    assert "prefill" in verbose.stderr and " on cpu in bf16" in verbose.stderr


@pytest.mark.parametrize("isa", ["portable", "neon", "avx2", "avxvnni", "avx512", "amx"])
def test_bf16_is_the_default_with_every_instruction_set(cli: Cli, isa: str) -> None:
    generated = cli(
        "generate", "-p", "a", "--device", "cpu", "--json", env={"LAMPLIGHTER_ISA": isa}
    )
    assert json.loads(generated.stdout)["dtype"] == "bf16"


def test_write_through_a_link_and_to_a_device(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "target.png").write_bytes(b"old")
    (tmp_path / "link.png").symlink_to("target.png")
    assert cli("generate", "-p", "a", "-o", "link.png", "--overwrite").returncode == 0
    assert (tmp_path / "link.png").is_symlink()
    assert (tmp_path / "target.png").read_bytes().startswith(b"\x89PNG")
    assert cli("generate", "-p", "a", "-o", "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


def test_existing_images_are_kept(cli: Cli, tmp_path: Path) -> None:
    generate = ("generate", "-p", "x", "-p", "y", "-b", 2)
    assert cli(*generate, "-o", "all/").returncode == 0
    (tmp_path / "some").mkdir()
    kept = tmp_path / "some" / "0001.png"
    kept.write_bytes(b"mine")
    result = cli(*generate, "-o", "some/", "--skip-existing")
    assert result.returncode == 0 and result.stderr.startswith("already there: 1 of 4 images\n")
    assert result.stdout.split() == [f"some/000{number}.png" for number in (0, 2, 3)]
    assert kept.read_bytes() == b"mine"
    for number in (0, 2, 3):
        name = f"000{number}.png"
        assert (tmp_path / "some" / name).read_bytes() == (tmp_path / "all" / name).read_bytes()
    again = cli(*generate, "-o", "some/", "--skip-existing")
    assert (again.returncode, again.stdout) == (0, "")


def test_an_image_on_standard_output(cli: Cli, tmp_path: Path) -> None:
    assert cli("generate", "-p", "x", "-o", "a.png").returncode == 0
    result = cli("generate", "-p", "x", "-o", "-", text=False)
    assert result.returncode == 0
    assert result.stdout == (tmp_path / "a.png").read_bytes()  # type: ignore[comparison-overlap]
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("ending", ["jpg", "webp"])
def test_other_kinds_of_files(cli: Cli, ran: Cli, tmp_path: Path, ending: str) -> None:
    generate = ("generate", "-p", "a猫", "--cfg-scale", 3, "-s", 5)
    assert cli(*generate, "-o", "a.png").returncode == 0
    done = cli(*generate, "-o", f"a.{ending}", "--grid", f"sheet.{ending}")
    if "no libwebp" in done.stderr:
        pytest.skip("built without libwebp")
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "a.png") as exact, Image.open(tmp_path / f"a.{ending}") as other:
        assert other.format == {"jpg": "JPEG", "webp": "WEBP"}[ending] and other.size == exact.size
        pairs = zip(exact.tobytes(), other.convert("RGB").tobytes(), strict=True)
        differences = [abs(one - two) for one, two in pairs]
        assert sum(differences) / len(differences) <= (0 if ending == "webp" else 8)
        details = other.getexif().get_ifd(0x8769)
        assert details[0x9286].startswith(b"UNICODE\0")
        assert details[0x9286][8:].decode("utf-16-be") == exact.text["parameters"]
        vendor, _, settings = details[0x927C].partition(b"\0")
        assert vendor == b"lamplighter" and settings.decode() == exact.text["lamplighter"]
    ran("generate", "--params-from", f"a.{ending}", "-o", "again.png")
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "a.png").read_bytes()
