"""The demo world: images, attributes, captions and the cells of the subject."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.demo.render import captions
from models.demo.render.scene import (
    WITHHELD,
    Scene,
    ordered,
    sample_any,
    sample_withheld,
    sensible,
    withheld,
)
from models.demo.render.subjects import PAINTS
from models.demo.render.vocabulary import (
    ATTRIBUTES,
    BACKGROUNDS,
    COLOURS,
    GROUNDS,
    NONE,
    SUBJECTS,
    TIMES,
    WEATHERS,
    known,
)
from models.demo.render.world import mirror, object_cells, render, render_with_cells, sample_scene
from models.demo.training import data

SCENES = [sample_scene(np.random.default_rng(seed)) for seed in range(4000)]
EXAMPLES = [
    Scene("lighthouse", "white", "dusk", "sea", "none", "left"),
    Scene("sailboat", "red", "night", "sea", "hills", "right"),
    Scene("house", "blue", "day", "meadow", "mountains", "centre"),
    Scene("windmill", "pink", "dawn", "lavender", "none", "left"),
    Scene("tent", "orange", "storm", "snow", "forest", "right"),
    Scene("tree", "green", "day", "autumn", "hills", "centre"),
    Scene("balloon", "purple", "dawn", "desert", "mountains", "centre"),
    Scene("castle", "yellow", "dusk", "tulips", "forest", "left", "rain"),
    Scene("car", "red", "day", "snow", "none", "centre", "snowfall"),
    Scene("mushroom", "blue", "dawn", "meadow", "hills", "right", "mist"),
]
PAIR = Scene("lighthouse", "red", "day", "sea", "none", "left", "fair", "balloon", "blue")


def words(phrases: tuple[str, ...], text: str) -> bool:
    return any(phrase in text for phrase in phrases)


@pytest.mark.parametrize("scene", EXAMPLES, ids=lambda s: s.subject)
def test_render_depends_on_scene_and_seed_alone(scene: Scene) -> None:
    first = render(scene, 3)
    assert first.shape == (256, 256, 3) and first.dtype == np.uint8
    np.random.default_rng(0).random(10)
    assert np.array_equal(first, render(scene, 3))
    assert not np.array_equal(first, render(scene, 4))


def test_every_attribute_changes_the_image() -> None:
    scene = Scene("house", "red", "day", "meadow", "none", "left")
    changed = {
        "subject": "tent",
        "colour": "blue",
        "time": "night",
        "ground": "snow",
        "background": "hills",
        "side": "right",
        "weather": "rain",
    }
    image = render(scene, 5).astype(int)
    paired = replace(scene, second="tree", second_colour="green")
    recoloured = replace(paired, second_colour="white")
    for a, b in (
        (image, render(paired, 5)),
        (render(paired, 5).astype(int), render(recoloured, 5)),
    ):
        assert np.abs(a - b).mean() > 1
    for name, value in changed.items():
        other = render(replace(scene, **{name: value}), 5).astype(int)
        assert np.abs(image - other).mean() > 1, name


def test_attributes_are_balanced() -> None:
    columns = np.array([scene.indices() for scene in SCENES])
    for column, (name, values) in enumerate(ATTRIBUTES.items()):
        share = np.bincount(columns[:, column], minlength=len(values)) / len(SCENES)
        if name in ("subject", "colour", "time", "ground", "background", "side"):
            assert share.min() > 0.55 / len(values), name
            assert share.max() < 1.8 / len(values), name
        elif name == "weather":
            assert share.max() < 0.7 and share.min() > 0.02, name
        else:
            assert 0.7 < share[values.index(NONE)] < 0.85, name


def test_combinations_are_sensible() -> None:
    for scene in SCENES:
        if scene.subject == "sailboat":
            assert scene.ground == "sea"
        if scene.subject in ("house", "tent", "tree", "windmill"):
            assert scene.ground != "sea"
        assert sensible(scene) and ordered(scene) == scene
        assert (scene.second == NONE) == (scene.second_colour == NONE)


def test_withheld_combinations_are_nowhere_in_training() -> None:
    assert not any(withheld(scene) for scene in SCENES)
    assert not any(withheld(data.scene_of(seed)) for seed in range(2000))
    rng = np.random.default_rng(3)
    share = np.mean([withheld(sample_any(rng)) for _ in range(2000)])
    assert 0.05 < share < 0.3
    kept = [sample_withheld(rng) for _ in range(300)]
    assert all(withheld(scene) and sensible(scene) for scene in kept)
    for combination in WITHHELD:
        assert any(
            all(getattr(scene, name) == value for name, value in combination.items())
            for scene in kept
        )


def test_what_the_demo_knows_is_written_down() -> None:
    entry = known()
    kinds = entry["kinds"]
    left_out = {"side", "second", "second_colour"}
    assert list(kinds) == [name for name in ATTRIBUTES if name not in left_out]
    for name, values in kinds.items():
        assert tuple(values) == ATTRIBUTES[name]
    assert "yacht" in kinds["subject"]["sailboat"] and kinds["weather"]["fair"] == []
    phrases = [p for values in kinds.values() for words in values.values() for p in words]
    words = set(" ".join([*phrases, *entry["other"]]).split())
    assert not {"left", "right", "side"} & words
    for side in captions.SIDE_PHRASES.values():
        words.update(" ".join(side).split())
    rng = np.random.default_rng(3)
    for text in [entry["example"], *(captions.caption(scene, rng) for scene in SCENES)]:
        assert set(text.replace(",", " ").split()) <= words, text


def test_indices_round_trip() -> None:
    for scene in SCENES[:200]:
        assert Scene.from_indices(scene.indices()) == scene


def test_captions_name_the_subject_and_nothing_wrong() -> None:
    rng = np.random.default_rng(1)
    named = {"colour": 0, "time": 0, "ground": 0, "background": 0, "side": 0, "weather": 0}
    with_weather = sum(scene.weather != "fair" for scene in SCENES[:2000])
    for scene in SCENES[:2000]:
        text = captions.caption(scene, rng)
        assert text == text.lower().strip() and "  " not in text
        assert words(captions.SUBJECT_WORDS[scene.subject], text), text
        named["colour"] += words(captions.COLOUR_WORDS[scene.colour], text)
        times = captions.TIME_PHRASES[scene.time] + captions.TIME_TAGS[scene.time]
        named["time"] += words(times, text)
        named["ground"] += words(captions.ground_phrases(scene), text)
        named["background"] += words(captions.BACKGROUND_PHRASES[scene.background], text)
        named["side"] += words(captions.SIDE_PHRASES[scene.side], text)
        named["weather"] += words(captions.WEATHER_PHRASES[scene.weather], text)
        if scene.pair:
            assert words(captions.SUBJECT_WORDS[scene.second], text), text
        for weather in set(WEATHERS) - {scene.weather}:
            assert not words(captions.WEATHER_PHRASES[weather], text), text
        for time in set(TIMES) - {scene.time}:
            assert not words(captions.TIME_PHRASES[time], text), text
        for ground in set(GROUNDS) - {scene.ground}:
            assert not words(captions.GROUND_PHRASES[ground], text), text
        for background in set(BACKGROUNDS) - {scene.background}:
            assert not words(captions.BACKGROUND_PHRASES[background], text), text
    for name in ("colour", "time", "ground"):
        assert named[name] > 0.9 * 2000, name
    assert 0.2 * 2000 < named["background"] < 0.8 * 2000
    assert 0.2 * 2000 < named["side"] < 0.8 * 2000
    assert 0.8 * with_weather < named["weather"] <= with_weather


def test_captions_vary_in_order_and_wording() -> None:
    scene = EXAMPLES[0]
    texts = {captions.caption(scene, np.random.default_rng(seed)) for seed in range(300)}
    assert len(texts) > 150
    assert any(text.startswith("a white lighthouse on the coast") for text in texts)
    assert any(not text.startswith(("a ", "the ", "white")) for text in texts)


def test_mirror_swaps_left_and_right_only() -> None:
    for scene in SCENES[:200]:
        flipped = mirror(scene)
        assert mirror(flipped) == scene
        assert replace(flipped, side=scene.side) == scene
        assert flipped.side == {"left": "right", "centre": "centre", "right": "left"}[scene.side]
    columns = np.array([scene.indices() for scene in SCENES[:200]])
    expected = np.array([mirror(scene).indices() for scene in SCENES[:200]])
    assert np.array_equal(data.mirror_attributes(columns), expected)


@pytest.mark.parametrize("scene", EXAMPLES, ids=lambda s: s.subject)
def test_subject_is_big_on_its_side_and_covered_by_its_cells(scene: Scene) -> None:
    cells = object_cells(scene, 9)
    assert cells.shape == (16, 16) and cells.dtype == bool
    assert 14 <= cells.sum() <= 90
    assert 5 <= np.flatnonzero(cells.any(1)).size <= 12
    expected = {"left": 80, "centre": 128, "right": 176}[scene.side]
    assert abs(np.argwhere(cells)[:, 1].mean() * 16 + 8 - expected) < 24
    other = replace(scene, colour="green" if scene.colour != "green" else "red")
    changed = np.abs(render(scene, 9).astype(int) - render(other, 9)).max(2) > 60
    inside = cells.repeat(16, 0).repeat(16, 1)
    inside[216:] |= scene.ground == "sea"  # reflections
    assert changed.sum() > 800
    assert (changed & inside).sum() > 0.97 * changed.sum()


def test_two_subjects_stand_on_their_sides() -> None:
    image = render(PAIR, 4).astype(int)
    for name, half in (("colour", slice(0, 128)), ("second_colour", slice(128, 256))):
        changed = np.abs(image - render(replace(PAIR, **{name: "green"}), 4)).max(2) > 60
        assert changed.sum() > 800
        assert changed[:, half].sum() > 0.97 * changed.sum(), name
    assert np.array_equal(
        render(PAIR, 4)[:20, :20], render(replace(PAIR, colour="white"), 4)[:20, :20]
    )


def test_captions_name_both_subjects_with_their_colours_and_sides() -> None:
    named = 0
    for seed in range(300):
        text = captions.caption(PAIR, np.random.default_rng(seed))
        assert words(captions.SUBJECT_WORDS["lighthouse"], text)
        assert words(captions.SUBJECT_WORDS["balloon"], text)
        named += words(captions.SIDE_PHRASES["left"], text) and words(
            captions.SIDE_PHRASES["right"], text
        )
    assert 50 < named < 200


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("colour", COLOURS)
def test_colour_stays_readable_at_every_time(time: str, colour: str) -> None:
    image, cells = render_with_cells(Scene("tent", colour, time, "meadow", "none", "centre"), 2)
    pixels = image[cells.repeat(16, 0).repeat(16, 1)].astype(float) / 255
    saturation = np.ptp(pixels, axis=1)
    if colour == "white":
        assert np.mean((saturation < 0.2) & (pixels.min(1) > 0.4)) > 0.25
        return
    paint = np.array(PAINTS[colour])
    directions = (pixels - pixels.mean(1, keepdims=True)) / (np.linalg.norm(
        pixels - pixels.mean(1, keepdims=True), axis=1, keepdims=True) + 1e-3)  # fmt: skip
    hue = (paint - paint.mean()) / np.linalg.norm(paint - paint.mean())
    assert np.mean((directions @ hue > 0.93) & (saturation > 0.15)) > 0.3


def test_shards_join_with_their_mirror_images(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(data, "SHARD", 4)
    for shard in range(2):
        data.tokenise_shard(tmp_path, shard, lambda x: x[:, ::16, ::16, 0].reshape(len(x), 256))
    joined = data.load_tokens(tmp_path)
    assert joined.tokens.shape == (16, 256) and joined.tokens.dtype == np.uint16
    assert joined.seeds.tolist() == [*range(8), *range(8)]
    for row in (1, 6):
        scene = data.scene_of(row)
        assert Scene.from_indices(joined.attributes[row]) == scene
        assert Scene.from_indices(joined.attributes[8 + row]) == mirror(scene)
        image, cells = render_with_cells(scene, row)
        assert np.array_equal(joined.tokens[row].reshape(16, 16), image[::16, ::16, 0])
        flipped = image[::16, ::-1][:, ::16, 0]
        assert np.array_equal(joined.tokens[8 + row].reshape(16, 16), flipped)
        assert np.array_equal(joined.cells[8 + row].reshape(16, 16), cells[:, ::-1])
    assert set(SUBJECTS) == set(captions.SUBJECT_WORDS)
