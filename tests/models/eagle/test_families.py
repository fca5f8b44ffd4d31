"""EAGLE drafters for bundles with other prompts than captions' features: data, training, and generation with them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import simplear_files
import torch
from tokenizers import Tokenizer

from models.eagle import data
from models.eagle.batch import Batch, make_batch
from models.eagle.drafter import Drafter
from models.eagle.features import (
    TargetModel,
    load_target,
    next_ids,
    prompt_ids,
    target_features,
    with_row_ends,
)
from models.eagle.losses import acceptance, chain_compression, guided_logits
from models.eagle.recipes import RECIPES
from models.eagle.train import Trainer, drafter_config
from models.export.checkpoint import ExportError, read_file
from models.llamagen.config import GPTConfig
from models.progress import Progress
from tests.e2e import families
from tests.e2e.support import CODES, export_bundle

CAPTIONS = ("a red boat", "Ein süßer Käfer, 35mm photo", "b", "the sea at night")


def lumina(folder: Path) -> Path:
    """Rows that end: 4 of 6 codes, and 2 of 4."""
    weights = families.Weights(families.Shape(layers=1), 23)
    state = weights.target("part")
    model = families.write_shards(folder / "model", weights.shape, state, 1)
    parts = ("--vq", families.write_vqgan(folder), "--tokenizer", families.TOKENIZER)
    sizes = ["96x64", "64x32"]
    return families.finish(folder, "lumina-mgpt", sizes, weights, state, "--model", model, *parts)


def classes(folder: Path) -> Path:
    """A number for a prompt; 4 x 4 codes."""
    config = GPTConfig(
        dim=32, n_layer=1, n_head=2, ffn_dim=48, vocab_size=CODES, grid=4, cls_token_num=1,
        num_classes=9, model_type="c2i",
    )  # fmt: skip
    return export_bundle(folder, config)


def uneven(folder: Path) -> Path:
    """SimpleAR whose next code depends on the last one more than on those before; 8 x 8 codes."""
    config = replace(simplear_files.SHAPE, max_positions=256, n_layer=2)
    state = simplear_files.random_state(config, tied=False)
    for name in state:
        if name.endswith(("wo", "w2")):
            state[name] *= 0.4
    state["head"] *= 3
    model = simplear_files.save_model(folder / "model", config, state, "bin", tied=False)
    decoder = simplear_files.decoder_state(simplear_files.DECODER)
    parts = ("--decoder", simplear_files.save_decoder(folder / "decoder.jit", decoder))
    sizes = families.with_sizes(folder, ["128x128"], 112)
    families.run_exporter("simplear", "--model", model, *parts, *sizes)
    return folder / "bundle"


BUNDLES = {
    "lumina": lumina,
    "chameleon": families.chameleon,
    "classes": classes,
    "janus": families.janus,
    "lumina2": families.lumina2,
    "simplear": families.simplear,
    "uneven": uneven,
    "tar_decoder": families.tar_decoder,
}
PROMPTS = {
    "classes": [str(i) for i in range(9)],
    "tar_decoder": [" ".join(map(str, range(36))), "3 1 4 1 5 9 2 6 39", "7 7 0 7"],
}
MakeData = Callable[..., tuple[Path, Path]]


@pytest.fixture(scope="module")
def make_data(tmp_path_factory: pytest.TempPathFactory, build_dir: Path) -> MakeData:
    """Bundle and data set of a kind; generated once for every size."""
    folders: dict[str, Path] = {}

    def make(kind: str, *arguments: str, images: int = 64) -> tuple[Path, Path]:
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(kind)
            BUNDLES[kind](folders[kind])
        bundle = folders[kind] / "bundle"
        out = folders[kind] / "-".join(("data", *arguments))
        prompts = PROMPTS.get(kind, CAPTIONS)
        captions = folders[kind] / "captions.txt"
        captions.write_text("\n".join((list(prompts) * images)[:images]), encoding="utf-8")
        if not out.exists():
            words = ["--bundle", bundle, "--captions", captions, "--out", out, "--build", build_dir]
            threads = torch.get_num_threads()
            assert data.main([*map(str, words), *arguments]) == 0
            torch.set_num_threads(threads)
        return bundle, out

    return make


def surprise(model: TargetModel, batch: Batch) -> tuple[float, float]:
    """Mean -log p of the codes, of all but the first, and the mean entropy of their distributions."""
    logits = guided_logits(batch.targets(1), model.head, batch.pairs, model.guidance)
    log_p, codes = logits.log_softmax(-1), batch.tokens(1)
    log_p, codes = log_p[codes >= 0], codes[codes >= 0]
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    return float(-log_p.gather(-1, codes[:, None]).mean()), float(entropy)


def caption_ids(manifest: dict[str, Any], caption: str, width: int, height: int) -> list[int]:
    text = manifest["prompt"]["text"].replace("{width}", str(width))
    text = text.replace("{height}", str(height)).replace("{prompt}", caption)
    return list(
        Tokenizer.from_file(str(families.TOKENIZER)).encode(text, add_special_tokens=False).ids
    )


@pytest.mark.parametrize(
    ("kind", "arguments", "shape"),
    [
        ("lumina", (), (4, 6)),
        ("lumina", ("--size", "64x32"), (2, 4)),
        ("chameleon", (), (3, 4)),
        ("classes", (), (4, 4)),
        ("janus", (), (4, 4)),
        ("lumina2", (), (8, 4)),
        ("simplear", (), (4, 4)),
        ("tar_decoder", (), (4, 4)),
    ],
)
def test_data(
    kind: str, arguments: tuple[str, ...], shape: tuple[int, int], make_data: MakeData
) -> None:
    """Codes that the engine generated are as probable under the features as the target's distribution says."""
    bundle, folder = make_data(kind, *arguments)
    (shard,) = data.load_shards(folder)
    rows, columns = shape
    ends = rows - 1 if kind.startswith("lumina") else 0
    assert (shard["codes"] >= 0).sum(1).tolist() == [rows * columns] * 64
    assert (shard["codes"] < 0).sum(1).tolist() == [ends] * 64
    model = load_target(bundle)
    assert ("ids" in shard) == (model.prompt_kind == "tokens")
    if kind == "lumina":
        # Nothing, or the caption with what introduces it, in front of the image's size.
        manifest, (width, height) = model.manifest, (16 * columns, 16 * rows)
        frame = [8804 + height // 32, 8804 + width // 32, int(shard["codes"][0, 0]) + 4]
        conditional, unconditional = shard["ids"][0, :, : model.prompt_length]
        assert unconditional.tolist() == [0] * (model.prompt_length - 3) + frame
        count = int(shard["valid"][0, 0])
        assert conditional[-3:].tolist() == frame and not conditional[:-count].any()
        assert caption_ids(manifest, CAPTIONS[0], width, height) == conditional[-count:-4].tolist()
        ids = shard["ids"][:, 0, model.prompt_length - 1 :]
        assert torch.equal(ids, torch.where(shard["codes"] < 0, 8803, shard["codes"] + 4))
    batch = make_batch(
        shard["features"].float(), shard["codes"], shard["valid"], model.prompt_length,
        shard.get("ids", 0), from_prompt=model.counts_from_prompt,
    )  # fmt: skip
    found, expected = surprise(model, batch)
    assert found == pytest.approx(expected, abs=0.15)
    other = replace(batch, codes=batch.codes.roll(1, 0))
    assert surprise(model, other)[0] > expected + 0.3


def test_positions_of_prompts_of_codes(make_data: MakeData) -> None:
    """As the engine counts them: from the first code of the prompt, however many there are."""
    bundle, folder = make_data("tar_decoder")
    images = data.Images(folder, drafter_config(load_target(bundle)), 0)
    batch = images.batch([(0, image) for image in range(3)])
    rows, counts = batch.positions[::2].tolist(), batch.valid[::2].tolist()  # conditional ones
    found = [row[-15 - count :] for row, count in zip(rows, counts, strict=True)]
    assert [len(row) for row in found] == [36 + 15, 9 + 15, 4 + 15]
    assert all(row == list(range(len(row))) for row in found)


def test_shards_of_many_passes(
    make_data: MakeData, build_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file does not tell how many images memory held at a time."""
    bundle, folder = make_data("lumina")
    model, codes = load_target(bundle), data.read_codes(folder / "codes-00000.json")[:6]
    prompts = prompt_ids(model, list(2 * CAPTIONS)[:6], build_dir)
    shards = []
    for passes, numbers in enumerate((1 << 29, 3 * model.cached, 1)):
        monkeypatch.setattr("models.eagle.features.PASS_NUMBERS", numbers)
        path = data.shard_path(tmp_path, "features", passes)
        data.make_shard(model, codes, prompts, path, (0,))
        shards.append(read_file(path))
    for shard in shards[1:]:
        torch.testing.assert_close(shard, shards[0])
    features, valid = target_features(model, with_row_ends(model, codes), prompts, (0,))
    width = model.embedding.shape[1]
    assert torch.equal(shards[0]["valid"], valid.int())
    assert torch.equal(shards[0]["ids"], next_ids(model, shards[0]["codes"].long(), prompts).int())
    for name, expected in (("features", features[..., :width]), ("inner", features[..., width:])):
        torch.testing.assert_close(shards[0][name], expected.bfloat16())


def test_sizes_that_there_are_not(make_data: MakeData) -> None:
    bundle, _ = make_data("lumina")
    with pytest.raises(ExportError, match="got size 64x64, expected one of 96x64, 64x32"):
        load_target(bundle, "64x64")


def expected_compression(
    model: TargetModel, drafter: Drafter, captions: list[str], generated: list[list[int]], build: Path,
    length: int,
) -> float:  # fmt: skip
    """Tokens per target pass of these images, as the training log reckons."""
    codes, prompts = (
        with_row_ends(model, torch.tensor(generated)),
        prompt_ids(model, captions, build),
    )
    features, valid = target_features(model, codes, prompts)
    ids = next_ids(model, codes, prompts) if model.prompt_kind == "tokens" else 0
    starts = model.counts_from_prompt
    batch = make_batch(features, codes, valid, model.prompt_length, ids, from_prompt=starts)
    top_k = model.manifest["sampling"]["top_k"]
    return chain_compression(
        acceptance(drafter.eval(), batch, model.head, model.guidance, top_k, length)[1]
    )


@pytest.mark.parametrize(
    "kind", ["lumina", "chameleon", "classes", "uneven", "tar_decoder"]
)  # no others' distributions are as uneven
def test_trained_drafter_generates(
    kind: str, make_data: MakeData, lamplighter: Path, build_dir: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The engine commits with it what the training log expects, and exactly the target's codes."""
    bundle, folder = make_data(kind)
    ticks = count()  # a step is 50 ms
    monkeypatch.setattr("models.eagle.train.time.process_time", lambda: 0.05 * next(ticks))
    model = load_target(bundle)
    config = drafter_config(model)
    options = replace(RECIPES["multi-step"], warm_up=10, minutes=80 * 0.05 / 60)
    images = data.Images(folder, config, held_out=32)
    trainer = Trainer(model, Drafter(config), options, tmp_path / "drafter.pt")
    trainer.report(images, 0.0, [], Progress("drafter", 1))
    trainer.run(images)
    before, after = trainer.reports
    assert after["rates"][0] > before["rates"][0] + 0.1

    families.run_exporter(
        "drafter", "--bundle", bundle, "--name", "trained", "--drafter", trainer.out, "--overwrite"
    )
    requests = folder.parent / "requests.jsonl"
    prompts = 2 * folder.with_name("captions.txt").read_text(encoding="utf-8").splitlines()
    key, convert = ("class", int) if kind == "classes" else ("prompt", str)
    requests.write_text("\n".join(json.dumps({key: convert(p)}) for p in prompts))

    def generated(*arguments: object) -> tuple[list[list[int]], list[dict[str, Any]]]:
        command = [lamplighter, "generate", "-m", bundle, "--prompt-file", requests, "--json"]
        command += ["-t", 1, "--overwrite", "-o", tmp_path / "%d.png", "--batch-size", 8]
        command += ["--save-codes", tmp_path / "codes.json", "--dtype", "fp32", *arguments]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        saved = json.loads((tmp_path / "codes.json").read_text())["images"]
        return [p["codes"] for p in saved], [json.loads(x) for x in done.stdout.splitlines()]

    eagle = ("--method", "eagle", "--drafter", "trained", "--tree")
    greedy = generated("--temperature", 0, *eagle, "chain-4")[0]
    assert greedy == generated("--temperature", 0, "--method", "ar")[0]
    for length in (1, 3):
        codes, lines = generated("--temperature", 1, *eagle, f"chain-{length}")
        found = sum(map(len, codes)) / sum(line["target_passes"] for line in lines)
        expected = expected_compression(model, trainer.drafter, prompts, codes, build_dir, length)
        assert found == pytest.approx(expected, rel=0.04)
        assert found == pytest.approx(after["chains"][length], rel=0.12)  # of other images
