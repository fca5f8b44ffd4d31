"""`serve`: the web UI's form, and the programs that people have."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
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
)
from tests.e2e.serve.recorded import RECORDED, SDAPI, WEBUIAPI_BODY, Recorded, basic
from tests.e2e.support import SIDE


def test_the_web_uis_form(server: Server, generated: Callable[..., bytes]) -> None:
    answer = server.post(
        TXT2IMG,
        {
            "prompt": PROMPT, "negative_prompt": "", "seed": 5, "steps": 20, "width": SIDE,
            "height": SIDE, "batch_size": 2, "cfg_scale": 3, "sampler_name": "Euler a",
            "method": "sjd",
        },
    )  # fmt: skip
    assert answer.status == 200, answer.body
    images = [base64.b64decode(image) for image in answer.json["images"]]
    flags = ("--method", "sjd", "--cfg-scale", 3)
    assert images == [generated("-s", 5, *flags), generated("-s", 6, *flags)]
    info = json.loads(answer.json["info"])
    assert info["all_seeds"] == [5, 6] and info["infotexts"][0].startswith(PROMPT)
    assert server.get("/sdapi/v1/progress").json["progress"] == 0
    (model,) = server.get("/sdapi/v1/sd-models").json
    options = server.get("/sdapi/v1/options").json
    assert options["sd_model_checkpoint"] == model["title"]
    checkpoint = {"sd_model_checkpoint": model["title"]}
    assert server.post("/sdapi/v1/options", checkpoint).status == 200
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


@pytest.fixture(scope="module")
def plain(start: Start) -> Server:
    """One without flags of its own for clients."""
    return start("-t", 1)


def warnings_of(answer: Answer) -> str:
    """The warnings in an answer's JSON, which its headers have, too."""
    body = json.loads(answer.json["info"]) if "info" in answer.json else answer.json
    text = "; ".join(body.get("warnings", []))
    assert bool(text) == ("X-Lamplighter-Warning" in answer.headers)
    return text


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
    assert "not used: quality, guidance_scale, num_inference_steps" in text
    assert answer.json["size"] == f"{SIDE}x{SIDE}" and answer.json["model"] == name
    assert warnings_of(plain.generate(seed=1)) == ""
    error = error_of(plain.generate(output="/tmp/x.png"), 400)
    assert "unknown field output" in error["message"]


def test_strict_servers_refuse_what_they_do_not_have(start: Start) -> None:
    server = start("-t", 1, "--strict")
    name = server.get("/v1/models").json["data"][0]["id"]
    assert error_of(server.generate(model="gpt-image-1"), 404)["code"] == "model_not_found"
    error_of(server.generate(size="1024x1024"), 400)
    error_of(server.generate(num_inference_steps=30), 400)
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


def test_guidance_of_the_web_uis_clients(start: Start, plain: Server) -> None:
    def scale(server: Server, value: float) -> float:
        body = {"prompt": PROMPT, "cfg_scale": value}
        return float(json.loads(server.post(TXT2IMG, body).json["info"])["cfg_scale"])

    own = scale(plain, 7)
    assert own != 7 and scale(plain, 3) == 3
    assert scale(start("-t", 1, "--webui-guidance", "always"), 7) == 7
    assert scale(start("-t", 1, "--webui-guidance", "never"), 3) == own


def test_the_web_ui_names_what_it_does_not_use(plain: Server) -> None:
    answer = plain.post(TXT2IMG, {**WEBUIAPI_BODY, "negative_prompt": "fog", "batch_size": 2})
    info = json.loads(answer.json["info"])
    assert len(answer.json["images"]) == 2 and info["width"] == SIDE
    for name in ("steps", "cfg_scale", "hr_upscaler", "scheduler"):
        assert name in info["unused"]
    assert "negative_prompt" in "".join(info["warnings"])
    assert not info["interrupted"]
    quiet = plain.post(TXT2IMG, {"prompt": PROMPT, "send_images": False})
    assert quiet.json["images"] == []


def test_a_sampler_may_be_a_method(plain: Server) -> None:
    names = [sampler["name"] for sampler in plain.get(SDAPI + "samplers").json]
    assert "ar" in names and "sjd" in names
    for name in ("ar", "sjd"):
        answer = plain.post(TXT2IMG, {"prompt": PROMPT, "sampler_name": name})
        info = json.loads(answer.json["info"])
        assert info["sampler_name"] == name and info["warnings"] == []


def test_names_and_passwords(start: Start) -> None:
    server = start("-t", 1, env={"LAMPLIGHTER_API_KEY": "secret"})
    for value, status in (
        (basic("me", "secret"), 200),
        (basic("", "secret"), 200),
        (basic("secret", ""), 401),
        (basic("me", "wrong"), 401),
        ("Basic secret", 401),
        ("Basic", 401),
        ("bearer secret", 200),
    ):
        assert server.get(SDAPI + "options", Authorization=value).status == status, value
    both = start("-t", 1, env={"LAMPLIGHTER_API_KEY": "me:secret"})
    assert both.get(SDAPI + "options", Authorization=basic("me", "secret")).status == 200


def test_settings_are_read_from_an_image(plain: Server) -> None:
    (image,) = plain.generate(seed=11, method="sjd").images
    for text in (
        base64.b64encode(image).decode(),
        "data:image/png;base64," + base64.b64encode(image).decode(),
    ):
        answer = plain.post(SDAPI + "png-info", {"image": text}).json
        assert answer["info"].startswith(PROMPT) and "Seed: 11" in answer["info"]
        assert json.loads(answer["items"]["lamplighter"])["method"] == "sjd"
    for bad in (
        "",
        "x",
        base64.b64encode(b"GIF89a").decode(),
        base64.b64encode(image[:60]).decode(),
    ):
        assert plain.post(SDAPI + "png-info", {"image": bad}).status == 400


def test_an_image_in_work_is_shown_and_interrupted(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, model=DEMO)
    answers: list[Answer] = []
    body = {"prompt": PROMPT, "sampler_name": "ar", "batch_size": 8}
    asking = threading.Thread(target=lambda: answers.append(server.post(TXT2IMG, body)))
    asking.start()
    shown: list[str] = []

    def is_shown() -> bool:
        image = server.get(SDAPI + "progress").json["current_image"]
        shown.extend([image] if image else [])
        return bool(image)

    server.until(is_shown)
    assert Image.open(io.BytesIO(base64.b64decode(shown[0]))).size == (256, 256)
    quiet = server.get(SDAPI + "progress?skip_current_image=true").json
    assert quiet["current_image"] is None and quiet["state"]["job"] == "txt2img"
    assert server.post(SDAPI + "interrupt", "").status == 200
    asking.join()
    info = json.loads(answers[0].json["info"])
    assert info["interrupted"] and len(answers[0].json["images"]) < 8
    server.until(lambda: server.metric("images_in_work") == 0)
    assert server.metric("queue_images") == 0


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


def test_webuiapi(plain: Server) -> None:
    webuiapi = pytest.importorskip("webuiapi")
    api = webuiapi.WebUIApi(host=plain.host, port=plain.port)
    result = api.txt2img(prompt=PROMPT, negative_prompt="fog", seed=5)
    assert result.image.size == (SIDE, SIDE) and result.info["seed"] == 5
    assert "Seed: 5" in api.png_info(result.image).info or result.info["infotexts"]
    assert api.get_progress()["progress"] == 0
    for name in (
        "get_options", "get_cmd_flags", "get_samplers", "get_sd_vae", "get_upscalers",
        "get_latent_upscale_modes", "get_loras", "get_sd_models", "get_hypernetworks",
        "get_face_restorers", "get_realesrgan_models", "get_prompt_styles", "get_scripts",
        "get_embeddings", "get_memory", "get_schedulers", "refresh_checkpoints", "interrupt", "skip",
    ):  # fmt: skip
        getattr(api, name)()
    api.util_set_model(api.util_get_model_names()[0])
    api.util_wait_for_ready()


def test_litellm(plain: Server) -> None:
    litellm = pytest.importorskip("litellm")
    answer = litellm.image_generation(
        prompt=PROMPT, model="openai/dall-e-3", size="1024x1024", quality="hd", n=1,
        api_base=f"http://{plain.host}:{plain.port}/v1", api_key="none",
    )  # fmt: skip
    assert base64.b64decode(answer.data[0].b64_json)[:4] == b"\x89PNG"
