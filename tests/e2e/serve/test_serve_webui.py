"""`serve`: the web UI's form and its clients."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable

import pytest
from PIL import Image

from tests.e2e.serve.client import (
    DEMO,
    PROMPT,
    TXT2IMG,
    Answer,
    Server,
    Start,
)
from tests.e2e.serve.recorded import SDAPI, WEBUIAPI_BODY, basic
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
        refused = plain.post(SDAPI + "png-info", {"image": bad})
        assert refused.status == 400 and b"JPEG" not in refused.body


def test_an_image_in_work_is_shown_and_interrupted(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, model=DEMO)
    answers: list[Answer] = []
    body = {"prompt": PROMPT, "sampler_name": "ar", "batch_size": 8, "cfg_scale": 5}
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
    images = answers[0].json["images"]
    assert info["interrupted"] and 0 < len(images) < 8
    assert info["cfg_scale"] == 5 and 0 < info["steps"] <= 256
    assert "CFG scale: 5.0" in info["infotexts"][-1]
    known = server.post(SDAPI + "png-info", {"image": images[-1]}).json["info"]
    assert known == info["infotexts"][-1]
    server.until(lambda: server.metric("images_in_work") == 0)
    assert server.metric("queue_images") == 0


def test_progress_counts_all_images_of_a_request(start: Start) -> None:
    """A client's bar rises from 0 to 1 once, however many images run side by side."""
    server = start("-t", 1, "--batch-size", 2, model=DEMO)
    body = {"prompt": PROMPT, "sampler_name": "ar", "batch_size": 6}
    asking = threading.Thread(target=lambda: server.post(TXT2IMG, body))
    asking.start()
    states: list[tuple[float, int]] = []
    while asking.is_alive():
        answer = server.get(SDAPI + "progress?skip_current_image=true").json
        if answer["state"]["job"] and asking.is_alive():
            assert answer["state"]["job_count"] in (6, 0)
            states.append((answer["progress"], answer["state"]["job_no"]))
    shares = [share for share, _ in states]
    assert shares == sorted(shares) and shares[0] < 0.3 and shares[-1] > 0.7
    assert {2, 4} <= {number for _, number in states}
    assert server.get(SDAPI + "progress").json["progress"] == 0


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
