"""Requests as public clients send them, written after their sources (late 2026): paths, fields and their defaults."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.serve.client import GENERATIONS, PROMPT, TXT2IMG

SDAPI = "/sdapi/v1/"
CHECKPOINT = "v1-5-pruned-emaonly.safetensors [6ce0161689]"


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@dataclass(frozen=True)
class Recorded:
    """A request, and the status of its answer."""

    client: str
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


# webuiapi 0.9.17: txt2img with its defaults.
WEBUIAPI_BODY: dict[str, Any] = {
    "enable_hr": False, "hr_scale": 2, "hr_upscaler": "Latent", "hr_second_pass_steps": 0,
    "hr_resize_x": 0, "hr_resize_y": 0, "hr_checkpoint_name": None, "hr_sampler_name": None,
    "hr_scheduler": None, "hr_prompt": "", "hr_negative_prompt": "", "denoising_strength": 0.7,
    "firstphase_width": 0, "firstphase_height": 0, "prompt": PROMPT, "styles": [], "seed": -1,
    "subseed": -1, "subseed_strength": 0.0, "seed_resize_from_h": 0, "seed_resize_from_w": 0,
    "batch_size": 1, "n_iter": 1, "steps": 20, "cfg_scale": 7.0, "width": 512, "height": 512,
    "restore_faces": False, "tiling": False, "do_not_save_samples": False,
    "do_not_save_grid": False, "negative_prompt": "", "eta": 1.0, "s_churn": 0, "s_tmax": 0,
    "s_tmin": 0, "s_noise": 1, "override_settings": {},
    "override_settings_restore_afterwards": True, "sampler_name": "Euler a",
    "scheduler": "automatic", "sampler_index": "Euler a", "script_name": None, "script_args": [],
    "send_images": True, "save_images": False, "alwayson_scripts": {},
}  # fmt: skip

# SillyTavern: its server passes on what the browser sent, with the address and the login.
SILLYTAVERN_BODY: dict[str, Any] = {
    "url": "http://localhost:7860", "auth": "me:secret", "prompt": PROMPT,
    "negative_prompt": "lowres, bad anatomy, blurry", "sampler_name": "DDIM",
    "scheduler": "Automatic", "steps": 20, "cfg_scale": 7, "width": 512, "height": 512, "seed": -1,
    "restore_faces": False, "enable_hr": False, "hr_upscaler": "Latent", "hr_scale": 1,
    "denoising_strength": 0.7, "hr_second_pass_steps": 0, "override_settings": {
        "CLIP_stop_at_last_layers": 1, "sd_vae": "", "forge_additional_modules": []},
    "override_settings_restore_afterwards": True, "clip_skip": 1, "save_images": True,
    "send_images": True, "do_not_save_grid": False, "do_not_save_samples": False,
}  # fmt: skip

NOBODY = {"Authorization": "Basic Og=="}  # an empty name and password
KEY = {"Authorization": "Bearer sk-none"}

# Open WebUI sends images as a form.
EDIT_TYPE = {"Content-Type": "multipart/form-data; boundary=x"}
EDIT_FORM = (
    "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'
        for name, more, value in (
            ("model", "", "gpt-image-1"),
            ("prompt", "", PROMPT),
            ("image", '; filename="a.png"\r\nContent-Type: image/png', "PNG"),
        )
    )
    + "--x--\r\n"
)

RECORDED = [
    *(
        Recorded("SillyTavern", "GET", SDAPI + path, headers=NOBODY)
        for path in (
            "options", "upscalers", "latent-upscale-modes", "sd-vae", "sd-modules", "samplers",
            "schedulers", "sd-models", "progress",
        )
    ),
    Recorded("SillyTavern", "POST", SDAPI + "options", {"sd_model_checkpoint": CHECKPOINT}, NOBODY),
    Recorded("SillyTavern", "POST", TXT2IMG, SILLYTAVERN_BODY, NOBODY),
    Recorded("SillyTavern", "POST", SDAPI + "interrupt", None, NOBODY),
    Recorded("Open WebUI", "GET", SDAPI + "options", headers={"Authorization": basic("a", "b")}),
    Recorded("Open WebUI", "GET", SDAPI + "sd-models", headers={"Authorization": basic("a", "b")}),
    # Without a login the header is there and empty. What GET gave comes back with another checkpoint.
    Recorded(
        "Open WebUI", "POST", SDAPI + "options",
        {"sd_model_checkpoint": CHECKPOINT, "sd_checkpoint_hash": "6ce0161689", "sd_vae": "Automatic",
         "CLIP_stop_at_last_layers": 1, "samples_format": "png"}, {"Authorization": ""},
    ),
    Recorded(
        "Open WebUI", "POST", TXT2IMG,
        {"prompt": PROMPT, "batch_size": 1, "width": 512, "height": 512}, {"Authorization": ""},
    ),
    Recorded(
        "Open WebUI with parameters", "POST", TXT2IMG,
        {"prompt": PROMPT, "batch_size": 1, "width": 512, "height": 512, "steps": 50,
         "negative_prompt": "text", "cfg_scale": 7.0, "sampler_name": "Euler", "scheduler": "Karras"},
    ),
    Recorded(
        "Open WebUI", "POST", GENERATIONS + "?api-version=2025-04-01-preview",
        {"model": "dall-e-2", "prompt": PROMPT, "n": 1, "size": "512x512",
         "response_format": "b64_json"}, KEY,
    ),
    Recorded("Open WebUI", "POST", GENERATIONS, {"model": "gpt-image-1", "prompt": PROMPT, "n": 1, "size": "auto"}, KEY),
    Recorded("Open WebUI", "POST", "/v1/images/edits", EDIT_FORM, {**KEY, **EDIT_TYPE}, 501),
    Recorded("webuiapi", "POST", TXT2IMG, WEBUIAPI_BODY),
    *(
        Recorded("webuiapi", "GET", SDAPI + path)
        for path in (
            "cmd-flags", "loras", "hypernetworks", "face-restorers", "realesrgan-models",
            "prompt-styles", "scripts", "embeddings", "memory",
        )
    ),
    Recorded("webuiapi", "POST", SDAPI + "refresh-checkpoints"),
    Recorded("webuiapi", "POST", SDAPI + "skip"),
    Recorded("webuiapi", "POST", SDAPI + "img2img", {**WEBUIAPI_BODY, "init_images": ["x"]}, status=501),
    Recorded(
        "LiteLLM", "POST", GENERATIONS,
        {"model": "demo", "prompt": PROMPT, "n": 1, "quality": "standard", "size": "1024x1024",
         "user": "", "response_format": "b64_json"}, KEY,
    ),
    Recorded(
        "ComfyUI node for OpenAI's API", "POST", GENERATIONS,
        {"model": "gpt-image-1", "prompt": PROMPT, "quality": "low", "background": "auto", "n": 1,
         "size": "1024x1536", "seed": 0, "moderation": "low"}, KEY,
    ),
    Recorded(
        "ComfyUI node for DALL-E 3", "POST", GENERATIONS,
        {"model": "dall-e-3", "prompt": PROMPT, "quality": "hd", "style": "vivid",
         "size": "1792x1024", "n": 1, "response_format": "url"}, KEY,
    ),
    Recorded(
        "ComfyUI node for compatible servers", "POST", GENERATIONS,
        {"model": "flux-dev", "prompt": PROMPT, "n": 1, "size": "768x1344", "seed": -1,
         "guidance_scale": 3.5, "num_inference_steps": 28, "negative_prompt": None,
         "response_format": "b64_json", "output_format": "png", "user": ""}, KEY,
    ),
    Recorded(
        "ComfyUI node with advanced parameters", "POST", GENERATIONS,
        {"model": "dall-e-3", "prompt": PROMPT, "n": 1, "size": "1024x1024", "response_format": "url",
         "width": 768, "height": 768, "negative_prompt": "fog", "guidance_scale": 5.0,
         "cfg_scale": 5.0, "steps": 30, "num_inference_steps": 30, "sampler": "euler",
         "scheduler": "euler"}, KEY,
    ),
    Recorded(
        "LibreChat", "POST", GENERATIONS,
        {"model": "gpt-image-1", "prompt": PROMPT, "n": 1, "size": "auto", "quality": "auto",
         "background": "auto", "output_format": "png", "output_compression": None}, KEY,
    ),
    Recorded(
        "LobeChat", "POST", GENERATIONS,
        {"model": "dall-e-3", "n": 1, "prompt": PROMPT, "width": 1024, "height": 1024, "seed": None,
         "cfg": 3.5, "steps": 20, "imageUrls": [], "response_format": "b64_json"}, KEY,
    ),
    Recorded(
        "Dify", "POST", GENERATIONS,
        {"prompt": PROMPT, "model": "dall-e-3", "size": "1792x1024", "n": 1, "quality": "standard",
         "style": "vivid", "response_format": "b64_json"}, KEY,
    ),
    Recorded(
        "n8n", "POST", GENERATIONS,
        {"prompt": PROMPT, "model": "gpt-image-1.5", "quality": "high", "size": "1536x1024",
         "background": "transparent", "moderation": "low", "n": 1}, KEY,
    ),
    Recorded(
        "vLLM-Omni's client", "POST", GENERATIONS,
        {"prompt": PROMPT, "size": "1024x1024", "num_inference_steps": 50, "true_cfg_scale": 4.0,
         "guidance_scale": 1.0, "vae_use_slicing": False, "vae_use_tiling": False, "seed": 42}, KEY,
    ),
    Recorded(
        "vLLM-Omni's client with all fields", "POST", GENERATIONS,
        {"prompt": PROMPT, "n": 1, "size": "1024x1024", "response_format": "b64_json", "user": None,
         "negative_prompt": "blurry", "num_inference_steps": 100, "guidance_scale": 4.0,
         "flow_shift": 3.0, "bot_task": None, "layers": None, "system_prompt": None,
         "use_system_prompt": None, "extra_params": {"a": 1}, "infer_align_image_size": None,
         "generator_device": "cpu", "lora": {"name": "a", "scale": 1.0}, "output_format": "png"}, KEY,
    ),
]  # fmt: skip
