"""Seconds and memory of decoding one picture with MoVQGAN at its published sizes and random weights.

scripts/measure_movqgan.py [PIXELS] prints a line of JSON; the program's whole process counts.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from models.chameleon.vqgan import VQGANConfig  # noqa: E402
from models.export.__main__ import main as export  # noqa: E402
from models.lumina2.movqgan import MoVQGAN  # noqa: E402

PUBLISHED = VQGANConfig(
    ch=256, ch_mult=(1, 2, 2, 4), z_channels=4, embed_dim=4, n_embed=16384, attn_levels=(3,)
)


def write_checkpoint(path: Path) -> None:
    torch.manual_seed(0)
    model = MoVQGAN(PUBLISHED, encoder=False)
    torch.nn.init.normal_(model.quantize.embedding.weight)
    torch.save(model.state_dict(), path)


def run(command: list[str | Path]) -> float:
    """GiB that a program has at most."""
    most = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
            most = max(most, int(found[1])) if found else most
            time.sleep(0.02)
    if process.returncode != 0:
        raise SystemExit(process.returncode)
    return most / 2**20


def main(pixels: int) -> None:
    side = pixels // PUBLISHED.downsample
    codes = torch.randint(PUBLISHED.n_embed, (side * side,)).tolist()
    saved = {"rows": side, "columns": side, "codes": codes}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_checkpoint(folder / "movqgan.ckpt")
        words = ["--vq", str(folder / "movqgan.ckpt"), "--out", str(folder / "bundle")]
        if export(["lumina-mgpt-2", *words]) != 0:
            raise SystemExit(1)
        (folder / "movqgan.ckpt").unlink()
        content = {"format": "lamplighter codes", "schema": 1, "pictures": [saved]}
        (folder / "codes.json").write_text(json.dumps(content), encoding="utf-8")
        command = [ROOT / "build" / "lamplighter", "decode", folder / "codes.json"]
        options = ["-m", folder / "bundle", "-o", folder / "%d.png", "--device", "cpu"]
        most = run([*command, *options])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime
    print(json.dumps({"pixels": pixels, "seconds": round(seconds, 1), "gib": round(most, 3)}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 768)
