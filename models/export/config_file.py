"""Reads configurations of all families and drafters: which value a key has, of which kind, within which bounds.

The rules, the same for every file:
- A number is a JSON number: "64" is refused where 64 is meant, as are true, NaN and numbers out of bounds.
- A value that decides the image (a size, a number of heads, the rotary base, an epsilon) has to be there.
  Only parts nested in the config.json of a model of several parts may leave out what equals the library's
  default, because the library leaves it out when it saves them; which values these are is printed.
  `swin_norm` (Chameleon) is false where it is left out: only the 30B has it.
- The language model may be described at the top or in `text_config`; both have to agree, also on
  `tie_word_embeddings`.
- The rotary base is `rope_theta`, at the top or in `rope_parameters` or `rope_scaling` (transformers 5);
  all places have to agree, and their rotation has to be the plain one, of type `default`.
- Precisions (`torch_dtype`, `dtype`) are not read: the tensors tell. Quantised models are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..transformer.config import Contradiction
from .json_file import read_json
from .messages import ExportError, note

Config = TypeVar("Config")
# The largest value of a size, by its name in models.*.config: beyond, a file is damaged.
MOST = {
    "n_layer": 1000,
    "n_head": 4096,
    "n_kv_head": 4096,
    "dim": 1 << 17,
    "ffn_dim": 1 << 20,
    "vocab_size": 1 << 24,
    "max_positions": 1 << 24,
}
MOST_SIZE = 1 << 24
LARGEST_BASE = 1e12
# Fields of a DecoderConfig and the keys of a Hugging Face config.json.
LLAMA_SIZES = {
    "vocab_size": "vocab_size",
    "dim": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_kv_head": "num_key_value_heads",
    "ffn_dim": "intermediate_size",
    "max_positions": "max_position_embeddings",
    "rope_base": "rope_theta",
    "norm_eps": "rms_norm_eps",
}
NUMBERS = ("rope_base", "norm_eps")
FLAGS = {"swin_norm": False}  # and what leaving one out means, which published files do
NESTED = ("text_config", "language_config", "llm_config")
# Keys that a nested description of the language model and the outer one may give differently.
OWN = ("model_type", "architectures", "torch_dtype", "dtype", "transformers_version", "vocab_size")
ROPE_KEYS = ("rope_type", "type", "rope_theta", "partial_rotary_factor")


def shown(value: Any) -> str:
    """A value as the file has it; of texts only those are quoted that look like other values."""
    words = ("", "true", "false", "null")
    plain = isinstance(value, str) and value not in words
    plain = plain and not value[:2].strip("+-.").isdecimal()
    text = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else f"{text[:100]} ..."


class Section:
    """An object of a configuration file. ExportError names the file, the key and what was expected.

    names: of keys in the file, where `values` have others.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        where: str,
        prefix: str = "",
        exit_code: int = 4,
        names: Mapping[str, str] | None = None,
    ):
        self.values, self.where, self.prefix, self.exit_code = values, where, prefix, exit_code
        self.names = names or {}

    @classmethod
    def read(cls, path: Path, exit_code: int = 4) -> Section:
        return cls(read_json(path, exit_code), str(path), exit_code=exit_code)

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def renamed(self, others: Mapping[str, str]) -> Section:
        """With other names for keys; messages keep the file's. Values of null are left out."""
        given = {k: v for k, v in self.values.items() if v is not None}
        values = {others.get(k, k): v for k, v in given.items()}
        names = {others.get(k, k): k for k in given}
        return Section(values, self.where, self.prefix, self.exit_code, names)

    def label(self, name: str) -> str:
        """What the file calls a key."""
        return self.prefix + self.names.get(name, name)

    def error(self, name: str, expected: str) -> ExportError:
        if name in self.values:
            got = f"{self.label(name)} is {shown(self.values[name])}"
        else:
            got = f"{self.label(name)} is missing"
        return ExportError(f"{self.where}: {got}, expected {expected}", self.exit_code)

    def integer(
        self, name: str, default: int | None = None, least: int = 1, most: int = MOST_SIZE
    ) -> int:
        """default: for a key that is not there or null, which is an error without one."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not int or not least <= value <= most:
            raise self.error(name, f"a whole number from {least} to {most}")
        return value

    def number(self, name: str, most: float, default: float | None = None) -> float:
        """A positive number."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if type(value) not in (int, float) or not 0 < value <= most:
            raise self.error(name, f"a positive number up to {most:g}")
        return float(value)

    def rotary_base(self, name: str) -> float:
        """Below 1 rotations would grow from pair to pair, beyond what fp32 holds."""
        value = self.number(name, LARGEST_BASE)
        if value < 1:
            raise self.error(name, f"a number from 1 to {LARGEST_BASE:g}")
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not bool:
            raise self.error(name, "true or false")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.error(name, "a text")
        return value

    def section(self, name: str) -> Section:
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise self.error(name, "an object")
        return Section(value, self.where, f"{self.prefix}{name}.", self.exit_code)

    def fixed(self, facts: Mapping[str, Any]) -> None:
        """Values that may be left out or null, but not differ."""
        for name, expected in facts.items():
            value = self.values.get(name)
            same = value == expected and isinstance(value, bool) == isinstance(expected, bool)
            if value is not None and not same:
                raise self.error(name, shown(expected))

    def known(self, names: tuple[str, ...] | list[str]) -> None:
        """ExportError: there is another key."""
        unknown = sorted(set(self.values) - set(names))
        if unknown:
            raise ExportError(
                f"{self.where}: unknown key {self.prefix}{unknown[0]}, expected {', '.join(names)}",
                self.exit_code,
            )


def language(outer: Section) -> Section:
    """The part of a config.json that describes the language model."""
    for name in NESTED:
        if name not in outer:
            continue
        inner = outer.section(name)
        for key in inner.values.keys() & outer.values.keys() - set(OWN):
            if inner.values[key] != outer.values[key]:
                raise ExportError(
                    f"{outer.where}: {key} is {shown(outer.values[key])}, and "
                    f"{shown(inner.values[key])} in {name}; expected one value"
                )
        own = {key: value for key, value in inner.values.items() if value is not None}
        return Section({**outer.values, **own}, outer.where, f"{name}.")
    return outer


def refuse_quantised(*sections: Section) -> None:
    for section in sections:
        if "quantization_config" in section:
            method = section.values["quantization_config"]
            method = method.get("quant_method") if isinstance(method, dict) else method
            raise ExportError(
                f"{section.where}: the model is quantised ({shown(method)}), expected weights in bf16, "
                "fp16 or fp32; export the model it was made of, --dtype int8 or int4 rounds it"
            )


def decoder_facts(
    section: Section, names: Mapping[str, str], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Fields of a DecoderConfig by the file; names: of a field -> the file's key.

    defaults: by field, for a nested description, which leaves out what equals them.
    """
    facts, left_out = {}, []
    for field, key in names.items():
        if field == "rope_base":
            value: Any = rope_base(section, key, (defaults or {}).get(field))
            absent = not has_rope_base(section, key)
        else:
            absent = key not in section and field not in FLAGS
            value = (defaults or {}).get(field) if absent else typed(section, field, key)
            if value is None and field == "n_kv_head":  # the library takes null for n_head
                continue
            if value is None:
                raise section.error(key, "a value, because images depend on it")
        facts[field] = value
        if absent:
            left_out.append(f"{key} {value}")
    facts.setdefault("n_kv_head", facts["n_head"])
    if left_out:
        part = section.prefix.rstrip(".")
        note(f"{section.where}: {part} leaves out what equals the defaults: {', '.join(left_out)}")
    return facts


def typed(section: Section, field: str, key: str) -> Any:
    if field in NUMBERS:
        return section.number(key, 0.1)
    if field in FLAGS:
        return section.flag(key, FLAGS[field])
    return section.integer(key, most=MOST.get(field, MOST_SIZE))


def rope_places(section: Section) -> list[Section]:
    """Where transformers 5 describes rotations, and older releases scaled ones."""
    names = [name for name in ("rope_parameters", "rope_scaling") if name in section]
    for name in names:
        values = section.section(name).values
        kinds = [values.get(key) for key in ("rope_type", "type")]
        plain = all(kind is None or kind == "default" for kind in kinds)
        if set(values) - set(ROPE_KEYS) or not plain:
            raise section.error(name, "rotations of type default: scaled ones are not supported")
    return [section.section(name) for name in names]


def has_rope_base(section: Section, key: str) -> bool:
    return key in section or any("rope_theta" in place for place in rope_places(section))


def rope_base(section: Section, key: str = "rope_theta", default: float | None = None) -> float:
    """The base of plain rotations. ExportError: there is none, there are two, or rotations are scaled."""
    section.fixed({"partial_rotary_factor": 1.0})
    found = {f"{section.prefix}{key}": section.rotary_base(key)} if key in section else {}
    for place in rope_places(section):
        place.fixed({"partial_rotary_factor": 1.0})
        if "rope_theta" in place:
            found[f"{place.prefix}rope_theta"] = place.rotary_base("rope_theta")
    if len(set(found.values())) > 1:
        values = " and ".join(f"{name} is {value:g}" for name, value in found.items())
        raise ExportError(f"{section.where}: {values}, expected one value", section.exit_code)
    if found:
        return next(iter(found.values()))
    if default is None:
        raise section.error(key, "the base of the rotations, because images depend on it")
    return default


def make_config(
    kind: Callable[..., Config],
    facts: Mapping[str, Any],
    where: str,
    part: Section | None = None,
    names: Mapping[str, str] = LLAMA_SIZES,
) -> Config:
    """A configuration of these values. ExportError: they do not fit each other.

    part: of the file, whose keys are named then; names: of a field -> the key.
    """
    try:
        return kind(**facts)
    except Contradiction as error:
        labels = [part.label(names.get(field, field)) for field in error.fields] if part else []
        said = f"{', '.join(labels)}: {error}" if labels else str(error)
        raise ExportError(f"{where}: {said}") from error
    except (ValueError, ZeroDivisionError) as error:
        raise ExportError(f"{where}: {error}") from error
