"""Prompt lookup; lookahead decoding's pool, window, and the verification of its guesses."""

from __future__ import annotations

from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_jacobi import EXACT, PAPER, single

KINDS = ("methods/ngram/",)


def test_guesses(case: Case) -> None:
    """Every proposal, and the state after every pass, by tests/golden/programs/golden_ngram.cpp."""
    engine.run(engine.BUILD / "golden_ngram", case.folder)


def test_verification(case: Case) -> None:
    """verify_tree on the trie of the guesses; a whole guess lets it emit one token more."""
    if not case.info.get("verification"):
        pytest.skip("nothing is verified")
    for recorded in case.info["verification"]:
        where = f"{case.name} verification {recorded['case']}"
        path, token = verified(case, recorded)
        emitted = recorded["emitted"]
        assert path == (emitted[:-1] if recorded["final"] else emitted), where
        assert not recorded["final"] or token == recorded["final"]["token"], where


def verified(case: Case, recorded: dict[str, Any]) -> tuple[list[int], int]:
    """Accepted tokens and the one behind them. Guesses with the same start share its nodes."""
    rows = case.tensors[f"v{recorded['case']}.rows"]
    nodes: dict[tuple[int, ...], int] = {(): 0}
    tokens, parents, target = [0], [-1], [rows[0, 0]]
    for guess, of_guess in zip(recorded["guesses"], rows, strict=True):
        for depth in range(1, len(guess) + 1):
            start = tuple(guess[:depth])
            if start in nodes:
                continue
            nodes[start] = len(tokens)
            tokens.append(guess[depth - 1])
            parents.append(nodes[start[:-1]])
            inside = depth < len(of_guess)
            target.append(of_guess[depth] if inside else torch.full_like(rows[0, 0], 1.0))
    uniforms = torch.zeros(len(tokens))
    tested: list[int] = []
    for depth, guess, token, _, uniform in recorded["trace"]:
        node = nodes[tuple(recorded["guesses"][guess][:depth]) + (token,)]
        if node not in tested:  # a token that is guessed twice is tested once
            uniforms[node] = single([uniform])[0]
            tested.append(node)
    if recorded["final"]:
        uniforms[0] = single([recorded["final"]["u"]])[0]
    tree = (
        torch.stack(target).float(), torch.empty(0, rows.shape[2]), torch.tensor(tokens),
        torch.tensor(parents), torch.full((len(tokens),), -1), uniforms,
    )  # fmt: skip
    path, count, token, _, _ = engine.operators().verify_tree(
        *(part[None].contiguous() for part in tree), torch.ones(1),
        torch.empty(0, dtype=torch.int32), EXACT, PAPER, False, 0, torch.empty(0), 0, rows.shape[1],
    )  # fmt: skip
    accepted = path[0, 1 : int(count) + 1].tolist()
    return [tokens[node] for node in accepted], int(token)
