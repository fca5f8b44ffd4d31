"""Names of Emu3's tensors: transformers' layouts get the official ones."""

from __future__ import annotations

import re

from ..checkpoint import ExportError, State

VQ = "vq."  # in front of the image tokenizer's names
# Beginning of a name in transformers' layouts -> in the official one.
PARTS = {
    "text_model.lm_head.": "lm_head.",
    "text_model.model.": "model.",
    "model.text_model.": "model.",
    "model.vqmodel.": VQ,
    "vqmodel.": VQ,
}
# Inside the image tokenizer.
BLOCKS = (
    (re.compile(r"\.attn_norm\."), ".attn_1.norm."),
    (re.compile(r"\.attn_norms\.(\d+)\."), r".attn.\1.norm."),
    (re.compile(r"\.middle_block\."), ".mid."),
    (re.compile(r"\.(down|up)_block\."), "."),
    (re.compile(r"\.(attn_1|attn\.\d+)\.([qkv])_proj\."), r".\1.\2."),
    (re.compile(r"\.(attn_1|attn\.\d+)\.out_proj\."), r".\1.proj_out."),
)
LINEAR = re.compile(r"\.(attn_1|attn\.\d+)\.(q|k|v|proj_out)\.weight")


def original_name(name: str) -> str:
    """The official name of a tensor; names of no known part stay, to be refused as unexpected."""
    for start, other in PARTS.items():
        if name.startswith(start):
            name = other + name.removeprefix(start)
            break
    if name.startswith(VQ):
        for pattern, replacement in BLOCKS:
            name = pattern.sub(replacement, name)
    return name


def original_state(state: State, where: str) -> State:
    """The tensors by the official names, products of attention as 1x1 convolutions."""
    result = {original_name(name): tensor for name, tensor in state.items()}
    if len(result) != len(state):
        raise ExportError(f"{where}: two tensors have one name in the official layout")
    return {
        name: tensor[:, :, None, None] if LINEAR.search(name) and tensor.dim() == 2 else tensor
        for name, tensor in result.items()
    }
