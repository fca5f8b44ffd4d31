"""Requests that bring an image, and what comes of them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.e2e.serve.client import Answer, Server

EDITS, IMG2IMG = "/v1/images/edits", "/sdapi/v1/img2img"
CAPTION = "a red boat"
BOUNDARY = "----a form's boundary"


def colours(width: int, height: int, seed: int = 0) -> Image.Image:
    """Soft random colours."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def png(image: Image.Image, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def clear_below(line: int, width: int = 64, height: int = 48) -> Image.Image:
    """A mask of OpenAI's form."""
    alpha = np.full((height, width), 255, dtype=np.uint8)
    alpha[line:] = 0
    mask = Image.new("RGBA", (width, height))
    mask.putalpha(Image.fromarray(alpha))
    return mask


def white_below(line: int, width: int = 64, height: int = 48) -> Image.Image:
    """A mask of the web UI's form."""
    grey = np.zeros((height, width), dtype=np.uint8)
    grey[line:] = 255
    return Image.fromarray(grey)


IMAGE = png(colours(64, 48))


def form(fields: dict[str, object]) -> bytes:
    """A body of the type multipart/form-data; bytes are files."""
    parts = []
    for name, value in fields.items():
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
        if isinstance(value, bytes):
            head += f'; filename="{name}.png"\r\nContent-Type: image/png'
        content = value if isinstance(value, bytes) else str(value).encode()
        parts.append(head.encode() + b"\r\n\r\n" + content + b"\r\n")
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def send(server: Server, body: bytes, **headers: str) -> Answer:
    kind = f'multipart/form-data; boundary="{BOUNDARY}"'
    return server.ask("POST", EDITS, body, {"Content-Type": kind, **headers})


def edit(server: Server, **fields: object) -> Answer:
    known: dict[str, object] = {"image": IMAGE, "prompt": CAPTION, "seed": 7}
    return send(server, form({k: v for k, v in (known | fields).items() if v is not None}))


def img2img(server: Server, **fields: object) -> Answer:
    known: dict[str, object] = {"init_images": [IMAGE], "prompt": CAPTION, "seed": 7}
    body = {
        key: [base64.b64encode(one).decode() for one in value]
        if key == "init_images" and isinstance(value, list)
        else base64.b64encode(value).decode()
        if isinstance(value, bytes)
        else value
        for key, value in (known | fields).items()
    }
    return server.post(IMG2IMG, body)


def settings(file: bytes) -> dict[str, Any]:
    """What a PNG file says of itself."""
    with Image.open(io.BytesIO(file)) as image:
        return json.loads(image.text["lamplighter"])  # type: ignore[attr-defined,no-any-return]


Continue = Callable[..., list[Path]]
