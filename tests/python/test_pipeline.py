"""The pipeline takes what diffusers' pipelines take."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

PROMPT = "a red boat on the sea at dawn"


@pytest.fixture(scope="module")
def pipeline(package: Any, demo_bundle: Path) -> Any:
    made = package.Pipeline.from_pretrained(demo_bundle, torch.bfloat16, "cpu", threads=1)
    made.set_progress_bar_config(disable=True)
    return made


def test_images_are_those_of_the_engine(pipeline: Any, engine: Any) -> None:
    output = pipeline(
        PROMPT,
        num_images_per_prompt=2,
        guidance_scale=3.0,
        seed=7,
        method="sjd",
        relax_k=None,
        latents=None,
    )
    want = engine.generate([PROMPT] * 2, seed=7, cfg_scale=3.0, method="sjd")
    assert [image.tobytes() for image in output.images] == [r.image.tobytes() for r in want]
    assert output[0] is output.images and len(output.results) == 2
    assert output._repr_html_().count("<img ") == 2


def test_generators_move_on_and_repeat(pipeline: Any) -> None:
    def codes(generator: Any) -> list[bytes]:
        results = pipeline([PROMPT] * 2, generator=generator, method="sjd").results
        return [result.codes.tobytes() for result in results]

    one = torch.Generator().manual_seed(7)
    first, second = codes(one), codes(one)
    assert len({*first, *second}) == 4
    assert codes(torch.Generator().manual_seed(7)) == first
    listed = codes([torch.Generator().manual_seed(seed) for seed in (7, 8)])
    assert listed[0] == first[0] and listed[1] != first[1]
    with pytest.raises(ValueError, match="got 1, expected one, or one for each of 2"):
        codes([one])


def test_forms_of_the_output(pipeline: Any) -> None:
    run = {"seed": 3, "method": "sjd"}
    (image,) = pipeline(PROMPT, **run).images
    array = pipeline(PROMPT, output_type="np", **run).images
    tensor = pipeline(PROMPT, output_type="pt", **run)[0]
    assert np.array_equal((array[0] * 255).round().astype(np.uint8), np.asarray(image))
    assert torch.equal(tensor, torch.from_numpy(array).permute(0, 3, 1, 2))
    with pytest.raises(ValueError, match="output_type: got 'latent'"):
        pipeline(PROMPT, output_type="latent")


def test_callbacks_and_arguments_without_effect(pipeline: Any) -> None:
    calls: list[tuple[int, int]] = []
    with pytest.warns(UserWarning, match="num_inference_steps has no effect"):
        pipeline(
            PROMPT,
            num_inference_steps=50,
            method="sjd",
            callback_on_step_end=lambda given, done, total, _: calls.append((done, total)),
        )
    assert calls == sorted(calls) and calls[-1] == (256, 256)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline(PROMPT, method="sjd")


def test_unknown_arguments_are_named(pipeline: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TypeError, match="'guidance_scal'; did you mean guidance_scale"):
        pipeline(PROMPT, guidance_scal=3)
    with pytest.raises(TypeError, match="'temprature'; did you mean temperature"):
        pipeline(PROMPT, temprature=1)
    with pytest.raises(TypeError, match="prompt_embeds is not supported; use prompt"):
        pipeline(PROMPT, prompt_embeds=torch.zeros(1))
    assert capsys.readouterr().err == "", "no bar begins"


def test_places(package: Any, demo_bundle: Path) -> None:
    made = package.Pipeline.from_pretrained(demo_bundle, device="cpu")
    assert repr(made) == f"Pipeline({str(demo_bundle)!r}, device='cpu')"
    assert made.to(torch.float32).engine.dtype == "fp32"
    assert made.to("int8", "cpu").engine.dtype == "int8"
    with pytest.raises(ValueError, match="float64"):
        made.to(torch.float64)
