"""Codes of finite scalar quantization against Cosmos' quantizer."""

from __future__ import annotations

import math

import torch
from golden_cases import Case

from models.cosmos.decoder import LEVELS, CosmosConfig, Quantizer, fsq_table

KINDS = ("families/cosmos_fsq",)


def test_levels(case: Case) -> None:
    assert tuple(case.info["levels"]) == LEVELS
    basis = [math.prod(LEVELS[:digit]) for digit in range(len(LEVELS))]
    assert case.info["basis"] == basis
    assert case.info["codebook_size"] == CosmosConfig().codes


def test_codes(case: Case) -> None:
    table = fsq_table(LEVELS, CosmosConfig().codes)
    assert torch.equal(table[case.long("indices")], case.tensors["codes"])


def test_grids(case: Case) -> None:
    quantizer = Quantizer(LEVELS, CosmosConfig().codes)
    for indices, codes in (("grid_indices", "grid_codes"), ("latent_indices", "latent_codes")):
        got = quantizer.lookup(case.long(indices)[:, 0])
        assert torch.equal(got, case.tensors[codes][:, :, 0])


def test_nearest_codes(case: Case) -> None:
    """Every recorded code is its own nearest row."""
    quantizer = Quantizer(LEVELS, CosmosConfig().codes)
    codes = case.tensors["grid_codes"][:, :, 0]
    assert torch.equal(quantizer.indices(codes), case.long("grid_indices")[:, 0])


def test_ids_of_text_stand_for_code_0() -> None:
    quantizer = Quantizer(LEVELS, 7, text=3)
    expected = fsq_table(LEVELS, 7)
    assert torch.equal(quantizer.table()[3:], expected)
    assert torch.equal(quantizer.table()[:3], expected[:1].expand(3, -1))
