"""The demo's drafter: a smaller MAR that learns where the target's chains of the same noise end."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from ...demo.training.vq_train import save_state
from ...progress import Progress
from ..chain import Chain
from ..config import MARConfig, square_shape
from ..diffusion import schedule
from ..losses import chain_loss
from ..network import MAR
from . import target
from .stage import Options, Stage
from .world import CLASSES

CONFIG = MARConfig(
    positions=64,
    channels=16,
    classes=CLASSES,
    buffer=4,
    encoder=square_shape(64, 2, 2),
    decoder=square_shape(64, 2, 2),
    head_depth=2,
    head_width=96,
)
FILE = "drafter.pth"
RATE = 1e-3
CHUNK = 25  # images of a file
DECODING_STEPS = 64
POSITIONS = 16  # of an image that a step of training looks at
SOME = 4  # steps of a chain that are compared on the target's own path


def write_images(options: Options, count: int) -> None:
    """Writes images of the target to files generated-00000.pt and so on."""
    model = target.load(options.work / target.FILE, target.CONFIG, options.device)
    files = -(-count // CHUNK)
    progress = Progress("generated", files)
    for number in range(files):
        path = options.work / f"generated-{number:05d}.pt"
        if not path.exists():
            torch.manual_seed(1000 + number)
            classes = torch.randint(CLASSES, (CHUNK,), device=options.device)
            tokens = target.generate(model, classes, DECODING_STEPS)
            save_state(path, {"tokens": tokens.cpu(), "classes": classes.cpu()})
            progress.show(number + 1)
            progress.log(f"{(number + 1) * CHUNK} images")


def generated(work: Path) -> tuple[Tensor, Tensor]:
    """Tokens [N,L,C] and classes [N]."""
    files = [
        torch.load(path, weights_only=True) for path in sorted(work.glob("generated-?????.pt"))
    ]
    return torch.cat([f["tokens"] for f in files]), torch.cat([f["classes"] for f in files])


def train(options: Options) -> None:
    """Prints the loss and the share of tokens that lossless verification would accept."""
    device = options.device
    stage = Stage("drafter", target.initialise(MAR(CONFIG)), options, RATE)
    teacher = target.load(options.work / target.FILE, target.CONFIG, device)
    chain = Chain(schedule(target.RESPACING), device)
    tokens, classes = generated(options.work)
    for _ in stage.steps():
        rows = torch.randint(len(tokens), (options.batch,))
        x, labels = tokens[rows].to(device), target.hide_some(classes[rows]).to(device)
        hidden = int(torch.randint(POSITIONS, target.CONFIG.positions + 1, ()))
        visible = target.random_visible(len(x), hidden, device)
        chosen = torch.where(visible, 1.0, torch.rand(visible.shape, device=device)).argsort(1)
        rows, chosen = torch.arange(len(x), device=device)[:, None], chosen[:, :POSITIONS]
        with torch.no_grad():
            known = teacher.context(x, visible, labels)[rows, chosen].flatten(0, 1)
        own = stage.model.context(x, visible, labels)[rows, chosen].flatten(0, 1)
        start = torch.randn(len(own), target.CONFIG.channels, device=device)
        noise = torch.randn(len(own), len(chain.steps), target.CONFIG.channels, device=device)
        nets = teacher.diffloss.net, stage.model.diffloss.net
        loss, ratio = chain_loss(chain, *nets, (known, own), start, noise, SOME)
        stage.update(loss, ratio.exp().clamp(max=1), ratio.median())
    target.write_checkpoint(options.work / FILE, stage)
