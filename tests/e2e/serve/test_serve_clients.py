"""`serve`: the programs that people have, and OpenAI's form as they send it."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.serve.client import (
    DEMO,
    GENERATIONS,
    PROMPT,
    TXT2IMG,
    Answer,
    Server,
    Start,
    error_of,
    warnings_of,
)
from tests.e2e.serve.recorded import RECORDED, WEBUIAPI_BODY, Recorded
from tests.e2e.support import SIDE


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
    assert Answer(200, {}, result.stdout).images == server.generate(seed=7).images


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
    assert server.metric("images_total") >= 6
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
    images = [base64.b64decode(image.b64_json) for image in answer.data]
    assert images == server.generate(seed=7, n=2).images
    with pytest.raises(openai.BadRequestError):
        client.images.generate(model=model.id, prompt="")
    types = {
        event.type for event in client.images.generate(model=model.id, prompt=PROMPT, stream=True)
    }
    assert "image_generation.completed" in types


@pytest.mark.parametrize("request_", RECORDED, ids=lambda r: f"{r.client} {r.method} {r.path}")
def test_requests_of_public_clients(plain: Server, request_: Recorded) -> None:
    headers = dict(request_.headers)
    body = None
    if isinstance(request_.body, str):
        body = request_.body
    elif request_.body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(request_.body)
    answer = plain.ask(request_.method, request_.path, body, headers)
    assert answer.status == request_.status, answer.body
    if request_.path.startswith(GENERATIONS):
        (entry,) = answer.json["data"]
        if "url" in entry:
            assert plain.get(entry["url"].split(str(plain.port), 1)[1]).body[:4] == b"\x89PNG"
        else:
            assert base64.b64decode(entry["b64_json"])[:4] == b"\x89PNG"
    if request_.path == TXT2IMG:
        (image,) = answer.json["images"]
        assert base64.b64decode(image)[:4] == b"\x89PNG"
        assert f"{SIDE}x{SIDE}" in warnings_of(answer)


def test_what_clients_do_not_get_is_said(plain: Server) -> None:
    answer = plain.generate(
        model="dall-e-3", size="1024x1024", quality="hd", guidance_scale=7.5, num_inference_steps=30
    )
    text = warnings_of(answer)
    name = plain.get("/v1/models").json["data"][0]["id"]
    assert f"model: got 'dall-e-3', the only one here is {name}" in text
    assert f"has no 1024x1024, the nearest it has is {SIDE}x{SIDE}" in text
    assert "not used: guidance_scale, num_inference_steps, quality" in text
    assert answer.json["unused"] == ["guidance_scale", "num_inference_steps", "quality"]
    assert answer.json["size"] == f"{SIDE}x{SIDE}" and answer.json["model"] == name
    quiet = plain.generate(seed=1)
    assert warnings_of(quiet) == "" and "unused" not in quiet.json


def test_fields_that_nobody_knows(plain: Server, tmp_path: Path) -> None:
    """They change nothing, and are named; what looks like a slip is refused with the name that was meant."""
    usual = plain.generate(seed=7).images
    path = tmp_path / "x.png"
    answer = plain.generate(seed=7, output=str(path), magic={"a": [1, None]}, **{"é\n": ""})
    assert answer.images == usual and not path.exists()
    assert answer.json["unused"] == ["output", "magic", "é\n"]
    assert "not used: output, magic" in warnings_of(answer)
    stream = plain.generate(seed=7, stream=True, magic=1)
    assert stream.status == 200 and "magic" in stream.headers["X-Lamplighter-Warning"]
    error = error_of(plain.generate(cfg_scle=3), 400)
    assert "unknown field cfg_scle" in error["message"]
    assert "did you mean cfg_scale?" in error["message"]
    many = plain.generate(seed=7, **{f"field of nobody {i}": i for i in range(4000)})
    assert many.images == usual and len(many.json["unused"]) == 4000
    assert all(len(value) < 2000 for value in many.headers.values())


def test_strict_servers_refuse_what_they_do_not_have(start: Start) -> None:
    server = start("-t", 1, "--strict")
    name = server.get("/v1/models").json["data"][0]["id"]
    assert error_of(server.generate(model="gpt-image-1"), 404)["code"] == "model_not_found"
    error_of(server.generate(size="1024x1024"), 400)
    for field in ("num_inference_steps", "magic", "cfg_scle"):
        assert field in error_of(server.generate(**{field: 3}), 400)["message"]
    assert server.post(TXT2IMG, WEBUIAPI_BODY).status == 400
    assert server.generate(model=name, quality="hd").status == 200


def test_models_have_other_names_when_asked(start: Start, plain: Server) -> None:
    name = plain.get("/v1/models").json["data"][0]["id"]
    server = start("-t", 1, "--model-alias", f"dall-e-3={name}")
    answer = server.generate(model="dall-e-3", seed=1)
    assert answer.json["model"] == name and warnings_of(answer) == ""
    assert server.get("/v1/models/dall-e-3").json["id"] == name
    assert server.get(f"/v1/models/{name}").json["object"] == "model"
    assert error_of(server.get("/v1/models/none"), 404)["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"output_format": "jpeg"}, "JPEG"),
        ({"output_format": "jpeg", "output_compression": 20}, "JPEG"),
        ({"output_format": "webp"}, "WEBP"),
        ({"output_format": "webp", "output_compression": 30}, "WEBP"),
        ({"output_format": "png"}, "PNG"),
    ],
)
def test_kinds_of_files(plain: Server, fields: dict[str, object], kind: str) -> None:
    answer = plain.generate(seed=3, **fields)
    assert answer.json["output_format"] == fields["output_format"]
    image = Image.open(io.BytesIO(answer.images[0]))
    assert image.format == kind and image.size == (SIDE, SIDE)
    if kind == "WEBP" and "output_compression" not in fields:
        expected = Image.open(io.BytesIO(plain.generate(seed=3).images[0]))
        assert image.convert("RGB").tobytes() == expected.convert("RGB").tobytes()
    url = plain.generate(seed=3, response_format="url", **fields).json["data"][0]["url"]
    named = plain.get(url.split(str(plain.port), 1)[1])
    assert named.headers["Content-Type"] == f"image/{fields['output_format']}"
    assert named.body == answer.images[0]


def test_a_seed_may_be_a_text_or_none(plain: Server) -> None:
    largest = 2**64 - 1
    assert plain.generate(seed=str(largest)).json["data"][0]["seed"] == largest
    assert plain.generate(seed=str(7)).images == plain.generate(seed=7).images
    random = [plain.generate(seed=-1).json["data"][0]["seed"] for _ in range(2)]
    assert random[0] != random[1]


def test_words_that_a_model_does_not_know_are_said(start: Start) -> None:
    server = start("-t", 1, model=DEMO)
    answer = server.generate(prompt="a zebra", method="sjd")
    assert "does not know: zebra" in warnings_of(answer)
    webui = server.post(TXT2IMG, {"prompt": "a zebra", "sampler_name": "sjd"})
    assert "does not know: zebra" in warnings_of(webui)
    events = server.generate(prompt="a zebra", method="sjd", stream=True)
    assert "zebra" in events.headers["X-Lamplighter-Warning"]
    last = json.loads(events.body.decode().strip().split("data: ")[-1])
    assert any("zebra" in line for line in last["warnings"])


def test_the_api_describes_itself(plain: Server) -> None:
    api = plain.get("/openapi.json").json
    assert api["openapi"].startswith("3.1")
    assert "null" not in json.dumps(api), "no bound that is infinite"
    for path, operations in api["paths"].items():
        for method in operations:
            if "{" not in path and method == "get":
                assert plain.get(path).status == 200, path
    fields = api["components"]["schemas"]["Generations"]["properties"]
    assert {"prompt", "seed", "method", "tree", "lambda", "output_format"} <= set(fields)
    assert "steps" not in api["components"]["schemas"]["Txt2Img"]["properties"]


def client_of_openai(server: Server) -> object:
    openai = pytest.importorskip("openai")
    return openai.OpenAI(
        base_url=f"http://{server.host}:{server.port}/v1", api_key="none", max_retries=0
    )


def test_openais_client_with_what_people_write(plain: Server) -> None:
    client = client_of_openai(plain)
    answer = client.images.generate(  # type: ignore[attr-defined]
        model="gpt-image-1", prompt=PROMPT, size="1024x1024", quality="high", output_format="webp",
        output_compression=80, background="opaque", moderation="low", n=2, user="me",
    )  # fmt: skip
    assert len(answer.data) == 2
    for image in answer.data:
        assert Image.open(io.BytesIO(base64.b64decode(image.b64_json))).format == "WEBP"
    (model,) = client.models.list().data  # type: ignore[attr-defined]
    assert client.models.retrieve(model.id).id == model.id  # type: ignore[attr-defined]


def test_litellm(plain: Server) -> None:
    litellm = pytest.importorskip("litellm")
    answer = litellm.image_generation(
        prompt=PROMPT, model="openai/dall-e-3", size="1024x1024", quality="hd", n=1,
        api_base=f"http://{plain.host}:{plain.port}/v1", api_key="none",
    )  # fmt: skip
    assert base64.b64decode(answer.data[0].b64_json)[:4] == b"\x89PNG"
