"""How generated images of the demo are classified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from models.demo import evaluate
from models.demo.render.captions import caption
from models.demo.render.scene import Scene, sample_scene
from models.demo.render.vocabulary import ATTRIBUTES
from models.demo.training.classifier import CLASSIFIED, FEATURES, SceneClassifier, classify, disturb


def test_classifier_names_every_attribute() -> None:
    torch.manual_seed(0)
    images = np.random.default_rng(0).integers(256, size=(3, 256, 256, 3)).astype(np.uint8)
    answers, features = classify(SceneClassifier().eval(), images)
    assert answers.shape == (3, len(CLASSIFIED)) and features.shape == (3, FEATURES)
    for column, name in enumerate(CLASSIFIED):
        assert (answers[:, column] < len(ATTRIBUTES[name])).all()
    rgb = torch.zeros(2, 3, 256, 256)
    assert disturb(rgb, np.random.default_rng(0)).shape == rgb.shape


def test_contact_sheets_show_all_images(tmp_path: Path) -> None:
    images = np.arange(5, dtype=np.uint8).repeat(2 * 3 * 3).reshape(5, 2, 3, 3)
    evaluate.contact_sheet(images, 4, tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert sheet[::2, ::3, 0].tolist() == [[0, 1, 2, 3], [4, 255, 255, 255]]


def test_shares_count_the_captions_that_name_an_attribute() -> None:
    said = np.zeros((4, 8), bool)
    said[:2, 0] = said[:, 1] = True
    right = np.zeros((2, 4, 8), bool)
    right[:, 0, 0] = right[0, 1, 0] = right[:, 2:, 0] = True
    right[:, :, 1] = True
    table = evaluate.shares(right, said)
    assert set(table) == {"subject", "colour", "all named"}
    assert table["subject"] == {"share": 0.75, "standard error": 0.25, "images": 4}
    assert table["colour"] == {"share": 1.0, "standard error": 0.0, "images": 8}
    assert table["all named"] == {"share": 0.875, "standard error": 0.125, "images": 8}


def test_figures_of_several_runs_have_a_standard_error() -> None:
    assert evaluate.spread([4.0]) == {"mean": 4.0}
    assert evaluate.spread([1.0, 2.0, 3.0, 2.0]) == {
        "mean": 2.0, "standard error": 0.408, "runs": [1.0, 2.0, 3.0, 2.0],
    }  # fmt: skip


def test_named_attributes_are_those_the_caption_says() -> None:
    scene = Scene("tent", "purple", "dusk", "meadow", "none", "left", "rain", "tree", "red")
    said = dict(zip(CLASSIFIED, evaluate.named(scene, "a tree and a violet tent on grass, sunset")))
    assert [name for name, value in said.items() if value] == [
        "subject",
        "colour",
        "time",
        "second",
    ]
    assert evaluate.named(scene, "a camping tent") == [True] + [False] * 7
    rng = np.random.default_rng(0)
    generated = [sample_scene(rng) for _ in range(500)]
    said = np.array([evaluate.named(s, caption(s, rng)) for s in generated])
    assert said[:, 0].all() and (said.mean(0)[:4] > 0.9).all()
