"""Times the official LlamaGen program beside the engine: the same weights, captions, guidance and cores.

    python scripts/compare_official.py --llamagen CHECKOUT [--lantern CHECKOUT] [--model BUNDLE] [-t N]

CHECKOUT is a clone of FoundationVision/LlamaGen (of jadohu/LANTERN), used unchanged. The official `Transformer` gets
the weights of the bundle's target, or of --checkpoint, and runs its own `generate()`. Neither side counts the prefill.
First both decode one image greedily in fp32: the number of equal tokens shows whether the models are the same. Then
the script times all programs in interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from comparison import ROOT, engine_ms, ms_per_token, plain_gpt, print_table

CAPTION = "a red sailboat on the sea at dusk"
LEAST = 2  # tokens that the official `generate` produces at least


class Official:
    """The official program with a bundle's weights."""

    def __init__(self, checkout: Path, bundle: Path, checkpoint: Path | None, dtype: str) -> None:
        import torch

        sys.path.insert(0, str(checkout))
        from autoregressive.models.generate import generate
        from autoregressive.models.gpt import ModelArgs, Transformer

        from models.llamagen.config import official_ffn_dim

        config, state, rotary, manifest = plain_gpt(bundle)
        if config.ffn_dim != official_ffn_dim(config.dim):
            fail(
                f"{bundle}: feed-forward of {config.ffn_dim}, which the official module cannot have"
            )
        arguments = ModelArgs(
            dim=config.dim, n_layer=config.n_layer, n_head=config.n_head, n_kv_head=config.n_kv_head,
            rope_base=config.rope_base, norm_eps=config.norm_eps, caption_dim=config.caption_dim,
            vocab_size=config.vocab_size, cls_token_num=config.cls_token_num,
            block_size=config.tokens, model_type="t2i",
        )  # fmt: skip
        self.model = Transformer(arguments).eval()
        # The official module has 120 text positions, even if `cls_token_num` differs.
        shape = (config.cls_token_num, config.caption_dim)
        self.model.cls_embedding.uncond_embedding = torch.zeros(shape)
        self.model.load_state_dict(read_checkpoint(checkpoint) if checkpoint else state)
        self.model.to({"fp32": torch.float32, "bf16": torch.bfloat16}[dtype])
        self.keep_rotations(rotary[: config.max_length])
        self.generate, self.tokens, self.sampling = generate, config.tokens, manifest["sampling"]
        features, self.mask = caption_features(bundle, manifest)
        self.features = (features * self.mask[..., None]).to(self.model.output.weight.dtype)

    def keep_rotations(self, table: Any) -> None:
        """Keeps the bundle's rotary table: for text the demo has the identity where the official table has zeros."""
        make = self.model.setup_caches

        def setup_caches(*arguments: Any, **options: Any) -> None:
            make(*arguments, **options)
            self.model.freqs_cis = table

        self.model.setup_caches = setup_caches

    def generate_image(self, tokens: int, **settings: Any) -> list[int]:
        names = ("cfg_scale", "temperature", "top_k", "top_p")
        settings = {**{name: self.sampling[name] for name in names}, **settings}
        with warnings.catch_warnings():  # every step warns about a deprecated context manager
            warnings.simplefilter("ignore")
            codes = self.generate(self.model, self.features, tokens, self.mask, **settings)
        return codes[0].tolist()


def fail(line: str) -> None:
    print(f"error: {line}", file=sys.stderr)
    sys.exit(3)


def read_checkpoint(file: Path) -> dict[str, Any]:
    from models.export.checkpoint import read_file

    state = read_file(file)
    return next((state[key] for key in ("model", "module", "state_dict") if key in state), state)


def caption_features(bundle: Path, manifest: dict[str, Any]) -> tuple[Any, Any]:
    """Features [1,T,C] and mask [1,T] of CAPTION, padded on the left as in the official sampling script."""
    import sentencepiece
    import torch

    from models.llamagen.gpt import pad_left

    file = str(bundle / manifest["tokenizer"]["file"])
    words = sentencepiece.SentencePieceProcessor(model_file=file)
    length = manifest["prompt"]["length"]
    ids = [*words.encode(CAPTION), words.eos_id()][:length]
    mask = torch.tensor([[1] * len(ids) + [0] * (length - len(ids))])
    padded = torch.tensor([ids + [0] * (length - len(ids))])
    encoder = torch.jit.load(str(bundle / manifest["modules"]["text_encoder"]["file"])).float()
    with torch.inference_mode():
        return pad_left(encoder.encode(padded, mask).float(), mask)


def engine_codes(bundle: Path, threads: int) -> list[int]:
    """Greedy tokens of CAPTION, in fp32."""
    with tempfile.TemporaryDirectory() as folder:
        codes = Path(folder) / "codes.json"
        command = [ROOT / "build" / "lamplighter", "generate", "-q", "-m", bundle, "-p", CAPTION,
                   "--method", "ar", "--temperature", 0, "--dtype", "fp32", "--device", "cpu", "-t", threads,
                   "-o", Path(folder) / "a.png", "--save-codes", codes]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        return json.loads(codes.read_text())["images"][0]["codes"]


def lantern_line(checkout: Path) -> str:
    """Says in one line why LANTERN's program cannot be measured here."""
    import torch

    command = [sys.executable, "-m", "entrypoints.generate_images", "--help"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        return f"LANTERN: not measured: {' '.join(command[1:3])} exits with {result.returncode} ({last})"
    source = (checkout / "entrypoints" / "generate_images.py").read_text(encoding="utf-8")
    fixed = [n for n, line in enumerate(source.splitlines(), 1) if "device='cuda'" in line]
    if fixed and not torch.cuda.is_available():
        return (
            "LANTERN: not measured: entrypoints/generate_images.py puts its models on 'cuda' in lines "
            f"{', '.join(map(str, fixed))}, and this machine has no CUDA device"
        )
    return "LANTERN: not measured: its program starts, but reads only its own checkpoints"


def is_checkout(text: str, file: str) -> Path:
    if not (Path(text) / file).is_file():
        raise argparse.ArgumentTypeError(f"{text}: no {file} there, expected a checkout")
    return Path(text).resolve()


def parse() -> argparse.Namespace:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = words.add_argument
    add("--llamagen", required=True, metavar="CHECKOUT", type=lambda text: is_checkout(text, "autoregressive/models/generate.py"))  # fmt: skip
    add("--lantern", metavar="CHECKOUT", type=lambda text: is_checkout(text, "entrypoints/generate_images.py"))  # fmt: skip
    add("--model", type=Path, default=ROOT / "models" / "demo" / "bundle", metavar="BUNDLE")
    add("--checkpoint", type=Path, metavar="FILE", help="official weights that the bundle was exported from, to use instead of the bundle's")  # fmt: skip
    add("--exact", default="eagle", metavar="METHOD", help="lossless method to time beside ar, as for `bench --methods` (default: eagle with the bundle's tree)")  # fmt: skip
    add("--rounds", type=int, default=5, metavar="N")
    add("--tokens", type=int, metavar="N", help="tokens of the official program (default: a whole image)")  # fmt: skip
    add("-t", "--threads", type=int, default=1, metavar="N")
    add("--export-json", type=Path, metavar="FILE")
    options = words.parse_args()
    if not (options.model / "manifest.json").is_file():
        words.error(f"--model: {options.model}: no bundle there")
    if options.checkpoint and not options.checkpoint.is_file():
        words.error(f"--checkpoint: {options.checkpoint}: no such file")
    if min(options.rounds, options.threads) < 1 or (options.tokens or 3) <= LEAST:
        words.error("--rounds and --threads: expected 1 or more, --tokens 3 or more")
    return options


def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    programs = {
        name: Official(options.llamagen, options.model, options.checkpoint, name)
        for name in ("fp32", "bf16")
    }
    first = programs["fp32"]
    count = min(options.tokens or first.tokens, first.tokens)
    theirs = first.generate_image(count, top_k=1)
    ours = engine_codes(options.model, options.threads)[:count]
    same = next((i for i, pair in enumerate(zip(theirs, ours)) if len({*pair}) > 1), count)
    print(f"equal greedy tokens: the first {same} of {count}", flush=True)
    takes: dict[str, Callable[[], dict[str, float]]] = {
        f"official {name}": lambda name=name: {
            f"official {name}": ms_per_token(programs[name].generate_image, count, LEAST)
        }
        for name in programs
    }
    for dtype in ("fp32", "bf16"):
        takes[f"engine {dtype}"] = lambda dtype=dtype: {
            f"engine {dtype} {method}": ms
            for method, ms in engine_ms(
                options.model, dtype, options.threads, 1, f"ar,{options.exact}", (CAPTION,)
            ).items()
        }
    for _ in range(options.rounds):
        for take in takes.values():
            for name, ms in take().items():
                times.setdefault(name, []).append(ms)
    return times


def main() -> None:
    options = parse()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    times = measure(options)
    print(f"{options.threads} thread(s), batch 1, guided, {options.rounds} interleaved rounds")
    print_table(times, "official fp32")
    if options.export_json:
        options.export_json.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
    if options.lantern:
        print(lantern_line(options.lantern))


if __name__ == "__main__":
    main()
