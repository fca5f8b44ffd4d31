"""Which precision a machine multiplies fast, for trainings."""

from __future__ import annotations

import torch


def fast_dtype(device: str | torch.device) -> torch.dtype:
    """bf16 where the device multiplies it natively; elsewhere fp32, which is faster there."""
    able = torch.cpu.get_capabilities()
    native = bool(able.get("avx512_bf16")) or bool(able.get("amx_bf16"))
    return torch.bfloat16 if native or torch.device(device).type != "cpu" else torch.float32


def mixed(device: str | torch.device) -> torch.autocast:
    """Products in the fast precision, weights and losses in fp32."""
    return torch.autocast(
        torch.device(device).type, torch.bfloat16, enabled=fast_dtype(device) != torch.float32
    )
