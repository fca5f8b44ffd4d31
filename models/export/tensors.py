"""Which tensors of a checkpoint can be exported, and how they fill a model."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from .messages import ExportError, listed

State = dict[str, Tensor]
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
QUANTISED_DTYPES = ("float8", "float4")
# Last parts of names that quantised checkpoints have: GPTQ and AWQ, bitsandbytes, fp8, compressed-tensors.
QUANTISED = (
    "qweight", "qzeros", "absmax", "quant_map", "nested_absmax", "SCB", "weight_scale", "weight_scale_inv",
    "weight_packed", "weight_zero_point", "_packed_params",
)  # fmt: skip
UNQUANTISED = "export the model it was made of, --dtype int8 or int4 rounds it"


def check_names(state: State, where: str) -> None:
    """ExportError: the names say that the checkpoint is no model's, or a quantised one."""
    for name in state:
        last = name.rpartition(".")[2]
        if last in QUANTISED or ".quant_state" in name:
            raise ExportError(
                f"{where}: {name}: the checkpoint is quantised, expected weights in bf16, fp16 or "
                f"fp32; {UNQUANTISED}"
            )
        if ".lora_A." in name or ".lora_B." in name:
            raise ExportError(
                f"{where}: {name}: got an adapter, expected a model; merge the adapter into it first"
            )
        if last.startswith("_flat_param"):
            raise ExportError(
                f"{where}: {name}: got the flat parameters of FSDP, expected a state dict; save one "
                "with StateDictType.FULL_STATE_DICT"
            )


def check_form(name: str, tensor: Tensor, where: str) -> None:
    """ExportError: the tensor cannot be exported, whatever its values are."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_meta:
        raise ExportError(f"{where}: {name} is on the meta device, it has a shape and no values")
    if tensor.is_nested or tensor.layout != torch.strided:
        form = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        raise ExportError(f"{where}: {name} is {form}, expected a dense tensor")
    if tensor.is_quantized or kind.startswith(QUANTISED_DTYPES):
        raise ExportError(
            f"{where}: {name} is {kind}, quantised; expected bf16, fp16 or fp32; {UNQUANTISED}"
        )
    if tensor.dtype not in FLOATS:
        raise ExportError(f"{where}: {name} is {tensor.dtype}, expected floating point")
    check_stored(name, tensor, where)


def usable(name: str, tensor: Tensor, where: str) -> Tensor:
    """The tensor as weights are read, fp64 in fp32. ExportError: it cannot be exported."""
    check_form(name, tensor, where)
    read = tensor.float() if tensor.dtype == torch.float64 else tensor
    # Archives hold memory as it is: of views that negate or stride, a copy.
    read = read.detach().resolve_neg().contiguous()
    if is_finite(read):
        return read
    if is_finite(tensor):
        largest = torch.finfo(torch.float32).max
        raise ExportError(
            f"{where}: {name} is fp64 with values beyond {largest:.4g}, the largest of fp32, in which "
            "weights are read"
        )
    raise ExportError(f"{where}: {name} has values that are NaN or infinite")


def is_finite(tensor: Tensor) -> bool:
    return not tensor.numel() or all(bool(bound.isfinite()) for bound in torch.aminmax(tensor))


def widest(tensors: Iterable[Tensor]) -> torch.dtype:
    """The narrowest precision that holds all tables and products; fp64 counts as fp32."""
    found = [t.dtype for t in tensors if t.dim() > 1 and t.dtype in FLOATS]
    dtype = functools.reduce(torch.promote_types, found)
    return torch.float32 if dtype == torch.float64 else dtype


def check_stored(name: str, tensor: Tensor, where: str) -> None:
    """ExportError: a tensor claims more values than the file stores."""
    if tensor.layout != torch.strided or tensor.is_meta:
        return
    stored = tensor.untyped_storage().nbytes()
    if tensor.nbytes > stored:
        raise ExportError(
            f"{where}: {name} has shape {list(tensor.shape)}, more than the {stored} bytes that are stored"
        )


def without(state: State, ignored: Iterable[str]) -> State:
    """The state less the keys that contain one of the strings in `ignored`."""
    ignored = tuple(ignored)
    return {k: v for k, v in state.items() if not any(part in k for part in ignored)}


def shape_is(tensor: Tensor, expected: list[int]) -> bool:
    return not tensor.is_nested and list(tensor.shape) == expected


def shape_text(tensor: Tensor) -> str:
    return "none, it is nested" if tensor.is_nested else str(list(tensor.shape))


def shape_of(state: State, key: str, dims: int, where: str) -> list[int]:
    """Shape of a tensor that must be there with this number of dimensions, none of them zero."""
    if key not in state:
        raise ExportError(f"{where}: missing key {key}")
    tensor = state[key]
    if tensor.is_nested or tensor.dim() != dims:
        raise ExportError(
            f"{where}: {key} has shape {shape_text(tensor)}, expected {dims} dimensions"
        )
    if 0 in tensor.shape:
        raise ExportError(
            f"{where}: {key} has shape {list(tensor.shape)}, expected no size of zero"
        )
    check_stored(key, tensor, where)
    return list(tensor.shape)


def count_blocks(state: State, prefix: str) -> int:
    """Number of consecutive indices i = 0, 1, ... with keys that start with prefix + i + '.'."""
    numbers = {k[len(prefix) :].partition(".")[0] for k in state if k.startswith(prefix)}
    return next(i for i in range(len(numbers) + 1) if str(i) not in numbers)


def check_keys(wanted: Iterable[str], got: Iterable[str], where: str) -> None:
    """ExportError says how many keys are missing or unexpected, and the first three."""
    wanted, got = set(wanted), set(got)
    for title, names in (("missing", wanted - got), ("unexpected", got - wanted)):
        if names:
            raise ExportError(f"{where}: {title} keys: {listed(sorted(names))}")


def load_strictly(model: nn.Module, state: State, where: str) -> None:
    """Fills a model made on the meta device with exactly the tensors of `state`."""
    wanted = model.state_dict()
    check_keys(wanted, state, where)
    for name, tensor in wanted.items():
        if not shape_is(state[name], list(tensor.shape)):
            got = shape_text(state[name])
            raise ExportError(f"{where}: {name} has shape {got}, expected {list(tensor.shape)}")
    model.load_state_dict({k: usable(k, state[k], where) for k in wanted}, assign=True)
    model.requires_grad_(False)
    model.eval()
