"""`serve`: the web UI's form, and the programs that people have."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.serve.client import (
    GENERATIONS,
    PROMPT,
    TXT2IMG,
    Answer,
    Server,
    Start,
)
from tests.e2e.support import SIDE


def test_the_web_uis_form(server: Server, drawn: Callable[..., bytes]) -> None:
    answer = server.post(
        TXT2IMG,
        {
            "prompt": PROMPT, "negative_prompt": "", "seed": 5, "steps": 20, "width": SIDE,
            "height": SIDE, "batch_size": 2, "cfg_scale": 3, "sampler_name": "Euler a",
            "method": "sjd",
        },
    )  # fmt: skip
    assert answer.status == 200, answer.body
    pictures = [base64.b64decode(image) for image in answer.json["images"]]
    flags = ("--method", "sjd", "--cfg-scale", 3)
    assert pictures == [drawn("-s", 5, *flags), drawn("-s", 6, *flags)]
    info = json.loads(answer.json["info"])
    assert info["all_seeds"] == [5, 6] and info["infotexts"][0].startswith(PROMPT)
    assert server.get("/sdapi/v1/progress").json["progress"] == 0
    (model,) = server.get("/sdapi/v1/sd-models").json
    options = server.get("/sdapi/v1/options").json
    assert options["sd_model_checkpoint"] == model["title"]
    checkpoint = {"sd_model_checkpoint": model["title"]}
    assert server.post("/sdapi/v1/options", checkpoint).status == 200
    assert server.post("/sdapi/v1/options", {"sd_model_checkpoint": "x"}).status == 400
    random = [
        json.loads(server.post(TXT2IMG, {"prompt": PROMPT, "seed": -1}).json["info"])["seed"]
        for _ in range(2)
    ]
    assert random[0] != random[1]


def test_curl(server: Server) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    body = json.dumps({"prompt": PROMPT, "seed": 7})
    result = subprocess.run(
        [
            curl, "-sf", "-H", "Content-Type: application/json", "-d", body,
            f"http://{server.host}:{server.port}{GENERATIONS}",
        ],
        capture_output=True, check=True,
    )  # fmt: skip
    assert Answer(200, {}, result.stdout).pictures == server.draw(seed=7).pictures


def test_aiperf(start: Start, tmp_path: Path) -> None:
    """NVIDIA's load generator, with a tokenizer of words where it would fetch one."""
    aiperf = shutil.which("aiperf")
    if aiperf is None:
        pytest.skip("no aiperf")
    server = start("-t", 1, "--method", "sjd")
    revision = "0" * 40
    hub = tmp_path / "hub" / "models--test--words"
    files = hub / "snapshots" / revision
    files.mkdir(parents=True)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text(revision)
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    tokenizer = {"version": "1.0", "added_tokens": [], "model": words}
    (files / "tokenizer.json").write_text(json.dumps(tokenizer))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (files / "tokenizer_config.json").write_text(json.dumps(kind))
    (files / "config.json").write_text(json.dumps({"model_type": "t5"}))
    (tmp_path / "captions.jsonl").write_text(json.dumps({"text": PROMPT}) + "\n")
    command = [
        aiperf, "profile", "--model", server.get("/v1/models").json["data"][0]["id"],
        "--endpoint-type", "image_generation", "--url", f"http://{server.host}:{server.port}",
        "--request-count", "6", "--concurrency", "2", "--tokenizer", "test/words",
        "--input-file", "captions.jsonl", "--custom-dataset-type", "single_turn",
        "--extra-inputs", f"size:{SIDE}x{SIDE}", "--ui", "none", "--artifact-dir", "out",
    ]  # fmt: skip
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert server.metric("pictures_total") >= 6
    (measured,) = (tmp_path / "out").rglob("profile_export_aiperf.json")
    assert json.loads(measured.read_text())["request_count"]["avg"] == 6


def test_openais_client(server: Server) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(
        base_url=f"http://{server.host}:{server.port}/v1", api_key="none", max_retries=0
    )
    (model,) = client.models.list().data
    answer = client.images.generate(
        model=model.id, prompt=PROMPT, n=2, size=f"{SIDE}x{SIDE}", extra_body={"seed": 7}
    )
    pictures = [base64.b64decode(picture.b64_json) for picture in answer.data]
    assert pictures == server.draw(seed=7, n=2).pictures
    with pytest.raises(openai.BadRequestError):
        client.images.generate(model=model.id, prompt="")
    types = {
        event.type for event in client.images.generate(model=model.id, prompt=PROMPT, stream=True)
    }
    assert "image_generation.completed" in types
