"""guide_and_filter on the ids of codes against the recorded processors of Lumina-mGPT and Anole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from torch import Tensor

KINDS = ("lumina_logits", "anole_logits", "lantern_lumina_structure")

HEADER = 2  # sizes between the begin of an image and its first code
NO_MASS = -1e30  # scores below stand for minus infinity


def ids(case: Case) -> slice:
    """Ids of codes; a case without them has its family's."""
    known = case.info.get("token_ids", {"image_first": 4, "image_last": 8195})
    first, last = case.info.get("image_ids", (known["image_first"], known["image_last"]))
    return slice(first, last + 1)


def codes(case: Case, scores: Tensor) -> Tensor:
    """The head holds the ids of codes only: all others are masked by construction."""
    return scores[..., ids(case)]


def pair(case: Case, row: int) -> Tensor:
    halves = [case.tensors[f"{half}_scores"][row] for half in ("cond", "uncond")]
    return codes(case, torch.stack(halves))


def assert_probabilities(case: Case, what: str, got: Tensor, expected: Tensor) -> None:
    """Probabilities [1, codes] and [1, ids]; kept ids are the same."""
    outside = torch.ones(len(expected), dtype=torch.bool)
    outside[ids(case)] = False
    assert not expected[outside].any(), f"{what}: an id that is no code has mass"
    engine.assert_close(what, got, codes(case, expected)[None], 1e-6)
    engine.assert_same_support(what, got, codes(case, expected)[None])


def assert_scores(case: Case, what: str, got: Tensor, scores: Tensor, tolerance: float) -> None:
    """Probabilities [1, codes] against recorded scores of all ids."""
    expected = scores.double().masked_fill(scores < NO_MASS, -torch.inf)
    assert_probabilities(case, what, got, expected.softmax(-1))
    visible = got[0] > 1e-30
    found = got[0].double().log() + expected.logsumexp(-1)
    engine.assert_close(
        f"{what}: scores", found[visible], codes(case, expected)[visible], tolerance
    )


def is_sampled(row: dict[str, Any]) -> bool:
    """The engine samples codes: no text, no header of an image, nothing that is forced."""
    in_image = bool(row["image_open"]) and row["tokens_after_boi"] >= HEADER
    return in_image and "forced" not in row["label"]


def check_lumina(case: Case) -> None:
    sampled = [i for i, row in enumerate(case.info["rows"]) if is_sampled(row)]
    for number in sampled:
        row = case.info["rows"][number]
        logits, scores = pair(case, number), case.tensors["processed_scores"][number]
        settings = (row["temperature"], row["image_top_k"], 1.0)
        got = engine.probabilities(logits, *settings, guidance=row["cfg_scale"])
        tolerance = case.info["tolerance"]["processed_abs"]
        assert_scores(case, row["label"], got, scores, tolerance)
        if row["cfg_scale"] == 1:
            assert torch.equal(engine.probabilities(logits[:1], *settings), got), row["label"]
    assert sampled


def check_anole(case: Case) -> None:
    for number, row in enumerate(case.info["rows"]):
        logits, settings = pair(case, number), (row["temperature"], row["top_k"], row["top_p"])
        got = engine.probabilities(logits, *settings, "ar", guidance=row["cfg"])
        what = f"{row['kind']}, autoregressive"
        assert_probabilities(case, what, got, case.tensors["ar_probs"][number])
        got = engine.probabilities(logits, *settings, "eagle", guidance=row["cfg"])
        what = f"{row['kind']}, speculative"
        tolerance = case.info["tolerance"]["scores_abs"]
        assert_scores(case, what, got, case.tensors["spec_scores"][number], tolerance)


def check_anole_text(case: Case) -> None:
    """For text prompts the image's row is the unconditional one, and three rows are two."""
    options = case.info["meta_options"]
    settings = (options["temp"], 0, options["top_p"])
    scale = options["guidance_scale_text"]
    got = engine.probabilities(pair(case, 1), *settings, guidance=scale)
    tolerance = case.info["tolerance"]["scores_abs"]
    assert_scores(case, "text prompt", got, case.tensors["meta_scores"][0], tolerance)
    conditional, unconditional = pair(case, 1)
    image = codes(case, case.tensors["meta_image_cond_scores"])
    combined = unconditional + options["guidance_scale_image"] * (image - unconditional)
    combined = combined + scale * (conditional - image)
    got = engine.probabilities(combined[None], *settings)
    assert_scores(case, "image prompt", got, case.tensors["meta_scores"][1], tolerance)


def check_lantern(case: Case) -> None:
    """Positions of an image of 48 x 48 codes; guided scores are given."""
    first = case.info["image_start_token_id_index"] + 1 + HEADER
    forced, positions = case.long("forced_48x48"), case.long("position_ids").tolist()
    sampled = [i for i, at in enumerate(positions) if at >= first and forced[at - first] < 0]
    for number in sampled:
        logits = codes(case, case.tensors["scores"][number])[None]
        got = engine.probabilities(logits, 1.0, case.info["image_top_k"], 1.0)
        scores = case.tensors["processed"][number]
        assert_scores(case, f"position {positions[number]}", got, scores, 1e-5)
    assert sampled


CHECKS: dict[str, tuple[Callable[[Case], None], ...]] = {
    "lumina_logits": (check_lumina,),
    "anole_logits": (check_anole, check_anole_text),
    "lantern_lumina_structure": (check_lantern,),
}


def test_rows(case: Case) -> None:
    assert case.kind is not None
    for check in CHECKS[case.kind]:
        check(case)
