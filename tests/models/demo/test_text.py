"""Captions of the demo: their tokenizer, and what the text encoder learns of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from models.demo.render.captions import caption
from models.demo.render.scene import Scene, sample_scene
from models.demo.render.vocabulary import COLOURS, SIDES, SUBJECTS
from models.demo.training.text import EOS, PREFIX, SHARED, UNK, CaptionReader, facts, perturb


def test_tokenizer_keeps_caption_words_whole(prepared: Path) -> None:
    reader, rng = CaptionReader(prepared / "text.model"), np.random.default_rng(1)
    captions = [caption(sample_scene(rng), rng) for _ in range(2000)]
    ids, mask = reader.encode(captions)
    assert ids.shape == mask.shape == (2000, PREFIX)
    assert not (ids == UNK).any()
    lengths = mask.sum(1)
    assert (ids.gather(1, lengths[:, None] - 1) == EOS).all()
    words = torch.tensor([len(text.replace(",", " ,").split()) + 1 for text in captions])
    assert (lengths == words.clamp(max=PREFIX)).float().mean() > 0.95
    assert (words <= PREFIX).float().mean() > 0.99


def test_unknown_words_become_letters(prepared: Path) -> None:
    reader = CaptionReader(prepared / "text.model")
    pieces = reader.pieces.encode("a zyxwvut house", out_type=str)
    assert pieces[0] == "\u2581a" and pieces[-1] == "\u2581house"
    assert "".join(pieces[1:-1]).strip("\u2581") == "zyxwvut"


def test_perturbed_captions_keep_their_words() -> None:
    rng = np.random.default_rng(2)
    changed = [perturb("a red tent", rng) for _ in range(500)]
    for text in changed:
        assert [w for w in text.rstrip(".").split() if w in ("a", "red", "tent")] == [
            "a",
            "red",
            "tent",
        ]
    assert 20 < sum(text.rstrip(".") != "a red tent" for text in changed) < 100


def test_facts_tell_whose_colour_and_side_is_which() -> None:
    scenes = [
        Scene("lighthouse", "white", "dusk", "sea", "none", "left", "fair", "sailboat", "red"),
        Scene("tent", "blue", "night", "snow", "forest", "centre"),
    ]
    rows = facts(np.stack([scene.indices() for scene in scenes]))[:, len(SHARED) :].reshape(
        2, -1, 2
    )
    colours, sides = (list(values) for values in (COLOURS, SIDES))
    expected = np.zeros_like(rows)
    expected[0, SUBJECTS.index("lighthouse")] = 1 + colours.index("white"), 1 + sides.index("left")
    expected[0, SUBJECTS.index("sailboat")] = 1 + colours.index("red"), 1 + sides.index("right")
    expected[1, SUBJECTS.index("tent")] = 1 + colours.index("blue"), 1 + sides.index("centre")
    assert (rows == expected).all()


def test_nouns_know_their_own_colour(work: Path) -> None:
    reader = CaptionReader(work / "text.model")
    scene = Scene("balloon", "green", "day", "sea", "none", "left", "fair", "sailboat", "red")
    labels = torch.from_numpy(facts(scene.indices()[None]))
    ids, _ = reader.encode(["a red sail boat and a green hot air balloon over the sea"])
    rows, positions, kinds = reader.subjects(ids, labels)
    found = [reader.pieces.id_to_piece(int(ids[0, p])) for p in positions]
    assert rows.tolist() == [0, 0] and found == ["\u2581boat", "\u2581balloon"]
    expected = [("sailboat", "red"), ("balloon", "green")]
    named = [divmod(int(kind), len(COLOURS)) for kind in kinds]
    assert [(SUBJECTS[k], COLOURS[c]) for k, c in named] == expected


def test_captions_of_equal_seeds_differ_in_what_the_scenes_differ_in(prepared: Path) -> None:
    reader = CaptionReader(prepared / "text.model")
    scene = Scene("tent", "pink", "day", "meadow", "none", "left", "fair", "tree", "white")
    other = replace(scene, colour="white", second_colour="pink")
    ids, _ = reader.phrase([scene, other], np.array([7, 7]))
    words = [sorted(reader.pieces.decode(row.tolist()).split()) for row in ids]
    assert words[0] == words[1] and not torch.equal(ids[0], ids[1])
