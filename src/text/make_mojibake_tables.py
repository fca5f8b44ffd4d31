"""Writes mojibake_tables.inc from the `ftfy` package, so that captions are repaired as it repairs them.

Usage: pip install ftfy==6.3.1; python src/text/make_mojibake_tables.py
"""

from __future__ import annotations

import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ftfy.badness import BADNESS_RE
from ftfy.chardata import CHARMAP_ENCODINGS, UTF8_CLUES
from table_lines import wrap

Node = tuple[Any, Any]  # of a parsed regular expression
OTHER = 0x4E00  # stands for all characters that no expression names
START = 255  # in a rule: the text begins here
NOTICE = """\
// Made by make_mojibake_tables.py from ftfy {}, Copyright Robyn Speer, Apache License 2.0: its categories of
// characters (badness.py), its clues (chardata.py) and its character sets, as tables. Do not edit.
"""


def named(node: Node) -> set[int]:
    """The characters that a part of an expression names."""
    kind, value = str(node[0]), node[1]
    if kind in ("LITERAL", "NOT_LITERAL"):
        return {value}
    if kind == "RANGE":
        return set(range(value[0], value[1] + 1))
    return set().union(*map(named, value)) if kind == "IN" else set()


def holds(node: Node, code: int) -> bool:
    """Whether a part of an expression matches a character; classes of Unicode are left to the engine."""
    kind = str(node[0])
    if kind == "ANY":
        return code != ord("\n")
    if kind == "IN" and str(node[1][0][0]) == "NEGATE":
        return code not in named(node)
    return code in named(node)


def rules() -> list[list[Node]]:
    """The alternatives of the expression for unlikely characters side by side; "x?" makes two of one."""
    tree = parser.parse(BADNESS_RE.pattern, BADNESS_RE.flags)
    result = []
    for alternative in tree[0][1][1]:
        for optional in (True, False):
            nodes: list[Node] = []
            for node in alternative:
                if str(node[0]) != "MAX_REPEAT":
                    nodes.append(node)
                elif optional:
                    nodes.extend(node[1][2])
            if nodes not in result:
                result.append(nodes)
    return result


def table(name: str, items: Iterable[str]) -> str:
    return f"constexpr {name} = {{\n{wrap(items)}\n}};\n"


def main() -> None:
    sets: dict[str, Node] = {}
    numbered = []
    for rule in rules():
        keys = []
        for node in rule:
            if str(node[0]) == "AT":
                keys.append(str(START))
                continue
            sets.setdefault(str(node), node)
            keys.append(str(list(sets).index(str(node)) + 1))
        numbered.append("{" + ", ".join(keys) + "}")
    constants = []
    for name, category in (("kWordSet", "CATEGORY_WORD"), ("kSpaceSet", "CATEGORY_SPACE")):
        number = next(i for i, key in enumerate(sets, 1) if category in key)
        constants.append(f"constexpr std::size_t {name} = {number};")
    for key, characters in UTF8_CLUES.items():
        words = key.replace("utf8", "k").split("_")
        sets[key] = parser.parse(f"[{characters}]")[0]
        name = words[0] + "".join(map(str.title, words[1:]))
        constants.append(f"constexpr std::size_t {name} = {len(sets)};")

    def mask(code: int) -> int:
        return sum(1 << i for i, node in enumerate(sets.values(), 1) if holds(node, code))

    assert len(sets) < 128
    rows: list[tuple[int, int, int]] = []
    for code in sorted({ord("\n")}.union(*map(named, sets.values()))):
        if rows and rows[-1][1] == code - 1 and rows[-1][2] == mask(code):
            rows[-1] = (rows[-1][0], code, rows[-1][2])
        else:
            rows.append((code, code, mask(code)))
    low = (1 << 64) - 1
    shown = (f"{{{a:#x}, {b:#x}, {{{m & low:#x}, {m >> 64:#x}}}}}" for a, b, m in rows)
    other = mask(OTHER)
    upper = [bytes(range(0x80, 0x100)).decode(name) for name in CHARMAP_ENCODINGS]
    charsets = ("{" + wrap(f"{ord(c):#x}" for c in text).strip() + "}" for text in upper)
    parts = [
        NOTICE.format(version("ftfy")),
        *constants,
        f"constexpr std::uint8_t kStart = {START};\n",
        table("std::uint8_t kRules[][8]", numbered),
        f"constexpr Sets kOtherSets{{{{{other & low:#x}, {other >> 64:#x}}}}};",
        table("SetRange kSetRanges[]", shown),
        "// Characters of the bytes 0x80 to 0xFF: " + ", ".join(CHARMAP_ENCODINGS) + ".",
        "constexpr char16_t kCharsets[][128] = {\n" + ",\n".join(charsets) + "};\n",
    ]
    Path(__file__).with_name("mojibake_tables.inc").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
