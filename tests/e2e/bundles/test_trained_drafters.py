"""Janus-Pro, Lumina-mGPT 2.0, SimpleAR, Emu3, Emu3.5, GLM-Image and both of Tar with drafters of all trainers."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from models.eagle import data
from models.eagle import train as eagle
from models.eagle.recipes import RECIPES
from models.heads import train as heads
from models.heads import train_refiner
from tests.e2e import families
from tests.e2e.bundles import checks
from tests.e2e.support import Cli

CAPTIONS = ("a red boat", "Ein süßer Käfer, 35mm photo", "b")
CODES = (" ".join(map(str, range(36))), "3 1 4 1 5 9 2 6 39", "7 7 0 7")  # of Tar's three scales
# Drafters are trained for the first size.
SIZES = {
    "janus": ((64, 64), (80, 48)),
    "lumina2": ((32, 64), (64, 32)),
    "simplear": ((64, 64), (80, 48)),
    "emu3": ((8, 12), (10, 4)),
    "emu35": ((8, 12), (10, 4)),
    "glm_image": ((96, 64),),
    "tar": ((84, 84), (42, 42)),
    "tar_decoder": ((8, 8),),
}
REFINED = (
    "simplear",
    "glm_image",
    "tar",
    "tar_decoder",
)  # a head of one product, rows of codes alone
GUESSERS: dict[str, tuple[str, ...]] = {
    "medusa": (),
    "mlp": (),
    "flash": (),
    "flash-compressed": ("--queries", "2", "--window", "3"),
}
BF16 = ("multi-step", "medusa", "flash")
METHODS: tuple[tuple[object, ...], ...] = (
    ("eagle", "--drafter", "published", "--tree", "chain-4"),
    ("eagle", "--drafter", "guided", "--tree", "lantern-26"),
    ("eagle-2", "--drafter", "hass", "--dynamic-depth", 4, "--dynamic-width", 4),
    ("eagle", "--drafter", "multi-step", "--tree", "lantern-26", "--rule", "traversal"),
    ("eagle", "--drafter", "multi-step", "--tree", "chain-6", "--draft-guidance", "conditional"),
    ("eagle+sjd", "--drafter", "multi-step", "--tree", "chain-5"),
    ("eagle", "--drafter", "multi-step-bf16", "--tree", "chain-4"),
    ("eagle-3", "--drafter", "eagle-3", "--tree", "dynamic", "--children", "top"),
    ("medusa", "--drafter", "medusa", "--tree", "chain-3"),
    ("mlp", "--drafter", "mlp", "--tree", "chain-3"),
    ("flash", "--drafter", "flash", "--tree", "chain-3"),
    ("flash", "--drafter", "flash-compressed", "--tree", "chain-3"),
    ("flash+sjd", "--drafter", "flash", "--tree", "chain-5"),
)
REFINE = ("refine", "--drafter", "refiner", "--tree", "chain-5")


def captions_of(family: str) -> tuple[str, str, str]:
    return CODES if family == "tar_decoder" else CAPTIONS


def attach(bundle: Path, kind: str, name: str, file: Path) -> None:
    """In the precision of training; what BF16 lists also in bf16 under another name."""
    flag = "--heads" if kind in ("medusa", "mlp") else "--drafter"
    for dtype in ("keep", "bf16") if name in BF16 else ("keep",):
        own = name if dtype == "keep" else f"{name}-{dtype}"
        words = (kind, "--bundle", bundle, "--name", own, flag, file, "--dtype", dtype)
        families.run_exporter(*words)


def trained(bundle: Path, build: Path, family: str) -> None:
    """Attaches a drafter of every recipe and kind, each trained for a moment."""
    folder = bundle.parent
    captions = folder / "captions.txt"
    captions.write_text("\n".join(captions_of(family) * 5), encoding="utf-8")
    words = ["--bundle", str(bundle), "--data", str(folder / "data"), "--minutes", "0.006"]
    words += ["--held-out", "4", "--batch", "4"]
    made = ("--bundle", bundle, "--captions", captions, "--out", folder / "data", "--build", build)
    assert data.main([*map(str, made), "--layers", "0", "1"]) == 0
    for recipe in RECIPES:
        file = folder / f"{recipe}.pt"
        assert eagle.main([*words, "--recipe", recipe, "--out", str(file)]) == 0
        attach(bundle, recipe if recipe == "eagle-3" else "drafter", recipe, file)
    for name, more in GUESSERS.items():
        kind, file = name.partition("-")[0], folder / f"{name}.pt"
        assert heads.main([kind, *words, *more, "--heads", "3", "--out", str(file)]) == 0
        attach(bundle, kind, name, file)
    if family in REFINED:
        words = ["--bundle", bundle, "--captions", captions, "--minutes", "0.006", "--batch", "4"]
        words += ["--inner", "8", "--build", build, "--out", folder / "refiner.pt"]
        assert train_refiner.main([*map(str, words)]) == 0
        attach(bundle, "refine", "refiner", folder / "refiner.pt")


@pytest.fixture(scope="module", params=SIZES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def bundle(family: str, tmp_path_factory: pytest.TempPathFactory, build_dir: Path) -> Path:
    sizes = [f"{width}x{height}" for width, height in SIZES[family]]
    made: Path = getattr(families, family)(tmp_path_factory.mktemp(family), sizes)
    threads = torch.get_num_threads()
    trained(made, build_dir, family)
    torch.set_num_threads(threads)
    return made


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_autoregressive_codes(
    cli: Cli, family: str, bundle: Path, tmp_path: Path, dtype: str
) -> None:
    lines = checks.requests(SIZES[family], captions_of(family), (5, 2, 1))
    generate = partial(checks.generate_requests, cli, bundle, tmp_path, lines)
    methods = checks.by_turns(METHODS, list(SIZES).index(family), dtype)
    methods += (REFINE,) if family in REFINED else ()
    expected = checks.check_lossless_methods(generate, dtype, methods)
    assert len({tuple(checks.tokens_of(image)) for image in expected}) == len(expected)


def test_recorded_results(ran: Cli, family: str, bundle: Path) -> None:
    result = ran("check", bundle, model=None)
    found = {line.split(":")[0] for line in result.stdout.splitlines() if ": ok, " in line}
    drafters = {*RECIPES, *GUESSERS, *(f"{name}-bf16" for name in BF16)}
    drafters |= {"refiner"} if family in REFINED else set()
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert set(manifest["modules"]) | drafters <= found
    entries = manifest["drafters"]
    stored = {name: entry["dtype"] for name, entry in entries.items() if name.endswith("-bf16")}
    assert set(stored.values()) == {"bfloat16"} and len(stored) == len(BF16)
