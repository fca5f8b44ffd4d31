"""Finds a model's tensors in what programs save: containers, averaged weights, prefixes of names.

The rules, the same for every family:
- Wrappers (WRAPPERS) name no part of a model: they are left out of names, wherever they stand.
- A checkpoint is a state dict, or holds one under a usual key (RAW, AVERAGED), also nested; what is under
  another key is taken, too, if no usual key holds any.
- Each family has a tensor that all its checkpoints have, the anchor. What stands in front of the anchor's
  name is a prefix (`model.`, `first_stage_model.`, ...), which all its tensors share; it is left out.
- Averaged weights (EMA) beside raw ones are no question where the official program knows which it takes
  (MAR: averaged); elsewhere --weights says it. Of several other models it names the key or prefix.
- Which container and prefix were used is printed, and what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from .messages import ExportError, listed, note
from .tensors import State, check_names

WRAPPERS = (
    "module", "_orig_mod", "_fsdp_wrapped_module", "_fpw_module", "_checkpoint_wrapped_module",
    "_forward_module",
)  # fmt: skip
RAW = (
    "model", "state_dict", "module", "params", "model_state_dict", "model_state", "state", "drafter",
    "net", "network", "weights",
)  # fmt: skip
AVERAGED = (
    "ema", "model_ema", "ema_model", "ema_state_dict", "params_ema", "ema_params", "state_dict_ema",
    "model_ema_state_dict", "ema_model_state_dict", "shadow", "shadow_params", "ema_weights", "swa",
    "swa_model", "swa_state_dict", "averaged", "averaged_model",
)  # fmt: skip
HEAD = "lm_head.weight"
MOST_NESTED = 4  # containers in containers
BESIDE = ("n_averaged",)  # counters that wrappers keep among the tensors
KINDS = ("model", "ema")
TOP, NO_PREFIX = "its top", "no prefix"


@dataclass
class Wish:
    """The value of --weights, and whether a file had weights of this name."""

    name: str  # one of KINDS, or a key or prefix
    met: bool = False


WEIGHTS: ContextVar[Wish | None] = ContextVar("weights", default=None)


def is_state(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(v, Tensor) for v in value.values())


def candidates(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The state dicts of a checkpoint and the keys they are under."""
    if not isinstance(content, Mapping) or len(path) > MOST_NESTED:
        return
    known = [key for key in (*RAW, *AVERAGED) if isinstance(content.get(key), Mapping)]
    found = [each for key in known for each in candidates(content[key], (*path, key))]
    if found:
        yield from found
    elif is_state(content):
        yield path, content
    elif not path:
        for key, value in content.items():
            yield from candidates(value, (str(key),))


def is_averaged(parts: Sequence[str]) -> bool:
    return any(part in AVERAGED for part in parts)


def unwrap(
    content: Any, path: Path, anchors: Sequence[str], usual: str | None = None, base: str = ""
) -> State:
    """The model's tensors in the content of a file, by the names that its family gives them.

    usual: which weights the official program takes where there are both, "ema" or "model"; base: as in
    `settled`.
    """
    state = contained(content, path, anchors, usual)
    return settled(state, str(path), anchors, usual, base)


def contained(
    content: Any, path: Path, anchors: Sequence[str] = (), usual: str | None = None
) -> State:
    """The tensors of the content's state dict by their own names."""
    where = str(path)
    if not isinstance(content, Mapping):
        raise ExportError(f"{where}: got {type(content).__name__}, expected a state dict")
    found = list(candidates(content))
    if not found:
        keys = listed(sorted(map(str, content)), 6) or "nothing"
        raise ExportError(
            f"{where}: no state dict: got keys {keys}, expected one of {', '.join(RAW)} or a bare "
            "state dict"
        )
    wish = WEIGHTS.get()
    if wish and wish.name not in KINDS:
        others = unknown(content, found[0][0], anchors)
        found += [each for each in others if is_named(label(each), wish.name)]
    fitting = [each for each in found if has_anchor(each[1], anchors)] or found
    keys, state = chosen(fitting, lambda each: is_averaged(each[0]), where, usual, label)
    if keys and (len(found) > 1 or keys[0] not in RAW or len(keys) > 1):
        note(f"{where}: takes the tensors under {label((keys, state))}")
    if left := [label((path, value)) for path, value in unknown(content, keys, anchors)]:
        note(
            f"{where}: takes the tensors under {label((keys, state))}, not those under {listed(left)}"
        )
    for name in nameless(content):
        note(f"{where}: leaves out the averaged weights under {name}, which have no names")
    return tensors_of(state, where)


def unknown(
    content: Mapping[Any, Any], taken: tuple[str, ...], anchors: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Models beside the one that is taken, under keys that say nothing."""
    if not taken or taken[0] not in (*RAW, *AVERAGED):
        return
    for key, value in content.items():
        if key not in (*RAW, *AVERAGED):
            under = candidates(value, (str(key),))
            yield from (each for each in under if has_anchor(each[1], anchors))


def nameless(content: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Where averaged weights are a list."""
    if not isinstance(content, Mapping) or len(path) > MOST_NESTED:
        return
    for key in AVERAGED:
        if isinstance(content.get(key), (list, tuple)) and content[key]:
            yield ".".join((*path, key))
        else:
            yield from nameless(content.get(key), (*path, key))


def label(candidate: tuple[Sequence[str], Any]) -> str:
    return ".".join(candidate[0]) or TOP


def chosen(
    found: Sequence[Any],
    averaged: Callable[[Any], bool],
    where: str,
    usual: str | None,
    name: Callable[[Any], str],
) -> Any:
    """The one candidate, or the one of the wished kind. ExportError: there are several."""
    wish = WEIGHTS.get()
    kind = wish.name if wish and wish.name in KINDS else usual
    of_kind = [each for each in found if kind and averaged(each) == (kind == "ema")]
    named = [each for each in found if wish and is_named(name(each), wish.name)]
    if wish and kind == wish.name:
        wish.met |= bool(named or of_kind)
    elif wish and named:
        wish.met, of_kind = True, []  # a name goes before what is usual
    for fitting in (found, of_kind, named):
        if len(fitting) == 1:
            return fitting[0]
    names = [name(each) for each in found]
    if len({averaged(each) for each in found}) == 2 and not wish:
        raise ExportError(
            f"{where}: has raw and averaged weights: {listed(names)}; give --weights model or "
            "--weights ema",
            2,
        )
    example = next((each for each in names if each not in (TOP, NO_PREFIX)), KINDS[0])
    raise ExportError(
        f"{where}: has several models: {listed(names)}; give --weights with the name of one, as in "
        f"--weights {example.rstrip('.')}",
        2,
    )


def tell_unmet() -> None:
    """Says that no file had the weights of --weights."""
    wish = WEIGHTS.get()
    if wish and not wish.met:
        note(
            f"--weights {wish.name}: no file has weights of this name, each gave the only ones it has"
        )


def is_named(name: str, wish: str) -> bool:
    """Whether --weights means the model of this key or prefix: all of it, or its last part.

    Usual keys behind a name say nothing: `student.state_dict` is `student`.
    """
    if name in (TOP, NO_PREFIX):
        return wish == KINDS[0]
    parts, wished = name.rstrip(".").split("."), wish.rstrip(".").split(".")
    while parts[-len(wished) :] != wished:
        if parts.pop() not in RAW or not parts:
            return False
    return True


def tensors_of(state: Mapping[Any, Any], where: str) -> State:
    """What a state dict has besides tensors (steps, versions) is left out, and named."""
    odd = [key for key in state if not isinstance(key, str)]
    if odd:
        raise ExportError(f"{where}: key {odd[0]!r} is no text, expected names of tensors")
    others = sorted(key for key, value in state.items() if not isinstance(value, Tensor))
    if others:
        note(f"{where}: leaves out what is no tensor: {listed(others)}")
    return {key: value for key, value in state.items() if isinstance(value, Tensor)}


def plain(name: str) -> str:
    """The name without wrappers."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def has_anchor(state: Mapping[Any, Any], anchors: Sequence[str]) -> bool:
    return bool(prefixes_of([plain(key) for key in state if isinstance(key, str)], anchors))


def prefixes_of(names: Sequence[str], anchors: Sequence[str]) -> list[str]:
    """What stands in front of the first anchor that there is."""
    for anchor in anchors:
        found = {n[: -len(anchor)] for n in names if n == anchor or n.endswith(f".{anchor}")}
        if found:
            return sorted(found)
    return []


def settled(
    state: State, where: str, anchors: Sequence[str], usual: str | None = None, base: str = ""
) -> State:
    """The tensors by plain names, `base` in front of the anchor in place of any other prefix.

    ExportError: two tensors get one name, or there are several models.
    """
    result: State = {}
    used: set[str] = set()
    for name, tensor in state.items():
        short = plain(name)
        if short in BESIDE:
            continue
        if short in result:
            raise ExportError(f"{where}: {short} is there twice, in and out of wrappers ({name})")
        used.update(part for part in name.split(".") if part in WRAPPERS)
        result[short] = tensor
    check_names(result, where)
    prefixes = prefixes_of(list(result), anchors)
    done = [f"reads the names without {', '.join(sorted(used))}"] if used else []
    if not prefixes:
        tell(where, done)
        return result
    prefix = chosen(
        prefixes, lambda p: is_averaged(p.split(".")), where, usual, lambda p: p or NO_PREFIX
    )
    result, more = rebased(result, prefix, base, [p for p in prefixes if p != prefix])
    tell(where, done + more)
    return result


def head_beside(state: State, prefix: str) -> str | None:
    """The name of the head of the model whose tensors have this prefix: the one that shares most of it.

    An averaged head is none of raw weights, nor the reverse.
    """
    kind = is_averaged(prefix.split("."))
    found = [name for name in state if name == HEAD or name.endswith(f".{HEAD}")]
    heads = [name for name in found if is_averaged(name.split(".")) == kind]
    if len(heads) > 1:
        heads = [name for name in heads if prefix.startswith(name.removesuffix(HEAD))]
    return max(heads, key=len, default=None)


def tell(where: str, done: Sequence[str]) -> None:
    if done:
        note(f"{where}: {', '.join(done)}")


def rebased(state: State, prefix: str, base: str, others: Sequence[str]) -> tuple[State, list[str]]:
    """The tensors of one prefix with `base` instead, and what was done; others: prefixes of other models.

    The head beside the tensors (`lm_head`) stays one.
    """
    if prefix == base and not others:
        return state, []
    longer = tuple(other for other in others if other.startswith(prefix))
    own = [n for n in state if n.startswith(prefix) and not (longer and n.startswith(longer))]
    result = {base + name[len(prefix) :]: state[name] for name in own}
    head = head_beside(state, prefix) if base else None
    if head is not None:
        result.pop(base + head[len(prefix) :] if head in own else "", None)
        result[HEAD] = state[head]
    left = sorted(set(state) - set(own) - {head})
    done = [f"reads the tensors under {prefix or NO_PREFIX}"]
    return result, done + ([f"leaves out {listed(left)}"] if left else [])
