"""The demo bundle at the size of a published LlamaGen: the same function at another model's cost.

python -m models.demo.enlarge --size L --out bundles/demo-L

Width, heads, layers, feed-forward and codes are the published model's. What is new multiplies by zero in
the end: further channels of the residual stream stay zero, further heads and neurons have random weights
whose outputs meet zero columns, further layers add nothing, and no filter keeps a further code. Norms
count the further channels, so their weights and epsilons are scaled. Images equal the demo's up
to rounding, and so is what a target accepts of its drafter; time is the published model's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from .. import ops
from ..bundle import Bundle, BundleModule
from ..export.common import SPARE_POSITIONS, encoder_calls, grid_entry, network_entries, seeded
from ..export.drafters.attach import NEIGHBOURS_FILE
from ..export.llamagen.bundle import gpt_calls
from ..llamagen.config import GPT_SIZES, GPTConfig
from ..llamagen.gpt import GPT
from ..recording import Call
from ..transformer.rotary import regrid_table
from .enlarge_drafters import Small, enlarged
from .enlarged_modules import EnlargedTarget
from .enlarger import Enlarger, Weights, fill, read_weights
from .export import BUNDLE

SIZES = ("B", "L", "XL", "XXL", "3B")
CODES = 16384  # of the published codebooks


def enlarge_target(small: Weights, enlarger: Enlarger) -> GPT:
    """The large GPT, in bf16 but for its norms, that does what the small target does."""
    layers = 1 + max(int(name.split(".")[1]) for name in small if name.startswith("layers."))
    torch.manual_seed(0)
    gpt = GPT(enlarger.config).bfloat16().requires_grad_(False)
    fill(gpt.tok_embeddings.weight, small["embedding"])
    fill(gpt.output.weight, small["head"])
    fill(gpt.cls_embedding.cap_proj.fc1.weight, small["fc1"])
    fill(gpt.cls_embedding.cap_proj.fc2.weight, small["fc2"])
    gpt.cls_embedding.uncond_embedding.copy_(small["null_features"])
    for number, block in enumerate(gpt.layers):
        attention, feed = block.attention, block.feed_forward
        if number >= layers:
            attention.wo.weight.zero_()
            feed.w2.weight.zero_()
            continue
        own = {name: small[f"layers.{number}.{name}"] for name in ("wqkv", "wo", "w13", "w2")}
        before = f"layers.{number - 1}.feed_norm" if number else "first_norm"
        enlarger.norm(block.attention_norm, small[before])
        enlarger.norm(block.ffn_norm, small[f"layers.{number}.attention_norm"])
        attention.wqkv.weight.copy_(torch.cat(enlarger.projections(own["wqkv"])))
        attention.wo.weight.copy_(enlarger.output(own["wo"]))
        for linear, part in zip((feed.w1, feed.w3), own["w13"].chunk(2)):
            fill(linear.weight[: len(part)], part)
        fill(feed.w2.weight, own["w2"])
    enlarger.norm(gpt.norm, small[f"layers.{layers - 1}.feed_norm"])
    return gpt


def enlarge(
    source: Path,
    out: Path,
    name: str,
    sizes: Mapping[str, int],
    codes: int = CODES,
    overwrite: bool = False,
    grid: int | None = None,
) -> None:
    """Writes the bundle `out` of the network `name` with `sizes` (see GPT_SIZES) and `codes` codes.

    source: a LlamaGen bundle of captions like the demo's. grid: rows and columns of tokens; other than the
    source's, the images cost what they would, but show what nothing was trained for.
    """
    ops.load()
    manifest: dict[str, Any] = json.loads((source / "manifest.json").read_text(encoding="utf-8"))
    files = {role: source / entry["file"] for role, entry in manifest["modules"].items()}
    module, small = read_weights(files["target"])
    known, dim = small["head"].shape
    source_grid = manifest["grids"][0]
    known_grid = source_grid["columns"]
    grid = grid or known_grid
    config = GPTConfig(
        **sizes,
        vocab_size=codes,
        grid=grid,
        cls_token_num=manifest["prompt"]["length"],
        caption_dim=manifest["prompt"]["features"],
        norm_eps=module.eps * dim / sizes["dim"],
    )
    enlarger = Enlarger(dim, 2 * small["rotary"].shape[1], config)
    gpt = enlarge_target(small, enlarger)
    target = EnlargedTarget(gpt, known)
    regrid = partial(regrid_table, old=known_grid, new=grid)
    target.rotary = enlarger.rotary(
        target.rotary, regrid(small["rotary"], prefix=config.cls_token_num)
    )
    bundle = Bundle(
        f"{manifest['name']}-{name}",
        manifest["family"],
        manifest["licence"],
        f"{manifest['source']}; enlarged to the shape of {name}",
        log=print,
    )
    bundle.modules = {
        "target": BundleModule(target, torch.bfloat16, gpt_calls(config)),
        "text_encoder": copied_encoder(files["text_encoder"]),
        "image_decoder": padded_decoder(files["image_decoder"], config.grid, codes),
    }
    pixels = source_grid["width"] // known_grid
    if "image_encoder" in files:  # it gives none of the further codes
        module, weights = read_weights(files["image_encoder"])
        table = weights["table"]
        part = BundleModule(module, table.dtype, encoder_calls(table, pixels))
        bundle.modules["image_encoder"] = part
    length = manifest["cache"]["max_length"] + grid**2 - known_grid**2
    for drafter, entry in manifest.get("drafters", {}).items():
        small = Small.read(
            entry, source / entry["file"], gpt.output.weight, known, length + SPARE_POSITIONS
        )
        made = enlarged(small, enlarger, partial(regrid, prefix=config.cls_token_num - 1))
        if made is None:
            print(f"note: drafter {drafter} is left out: its kind is not enlarged")
        else:
            bundle.drafters[drafter] = made
    tokenizer = manifest["tokenizer"]["file"]
    bundle.files[tokenizer] = source / tokenizer
    bundle.entries = {key: manifest[key] for key in ("prompt", "tokenizer", "sampling")}
    bundle.entries["grids"] = [grid_entry(pixels * grid, pixels * grid, pixels)]
    bundle.entries["decoder"] = {**manifest["decoder"], "codebook_size": codes}
    bundle.entries.update(network_entries(config, 0, codes, length))
    if "neighbours" in manifest:
        table = padded_neighbours(source / manifest["neighbours"]["file"], codes)
        bundle.tensors[NEIGHBOURS_FILE] = {"neighbours": table}
        bundle.entries["neighbours"] = {"file": NEIGHBOURS_FILE}
    bundle.write(out, overwrite)


def copied_encoder(archive: Path) -> BundleModule:
    module, weights = read_weights(archive)
    ids = torch.randint(len(weights["embedding"]), (1, 6), generator=seeded())
    calls = [Call("encode", [ids, torch.ones_like(ids)])]
    return BundleModule(module, weights["embedding"].dtype, calls)


def padded_decoder(archive: Path, grid: int, codes: int) -> BundleModule:
    """The image decoder with codes that are never sampled."""
    module, weights = read_weights(archive)
    small = weights["table"]
    table = torch.zeros(codes, small.shape[1], dtype=small.dtype)
    fill(table, small)
    module.table = table
    ids = torch.randint(len(small), (1, grid, grid), generator=seeded())
    return BundleModule(module, table.dtype, [Call("decode", [ids])])


def padded_neighbours(file: Path, codes: int) -> Tensor:
    """The table uint16 [codes,K]; codes that are never sampled have the first ones as neighbours."""
    small = load_file(file)["neighbours"]
    table = torch.arange(small.shape[1]).repeat(codes, 1).to(torch.uint16)
    table[: len(small)] = small
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.demo.enlarge", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="BUNDLE")
    parser.add_argument("--bundle", type=Path, default=BUNDLE, help="default: the demo bundle")
    parser.add_argument(
        "--grid",
        type=int,
        choices=range(2, 97),
        metavar="N",
        help="rows and columns of tokens (default: the demo's 16); what larger images show was never trained",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing bundle")
    options = parser.parse_args()
    enlarge(
        options.bundle,
        options.out,
        f"LlamaGen-{options.size}",
        GPT_SIZES[options.size],
        overwrite=options.overwrite,
        grid=options.grid,
    )


if __name__ == "__main__":
    main()
