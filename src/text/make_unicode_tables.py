"""Writes unicode_tables.inc from Python's own Unicode data, so that the engine treats text as Python does,
and from the `tokenizers` package, so that it splits text as that does.

Usage: python src/text/make_unicode_tables.py
"""

from __future__ import annotations

import html.entities
import sys
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

import tokenizers
from table_lines import wrap
from tokenizers import Regex
from tokenizers.normalizers import NFC
from tokenizers.pre_tokenizers import Digits, PreTokenizer, Punctuation, Split

CODES = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]


def runs(test: Callable[[int], bool]) -> list[tuple[int, int]]:
    """First and last code of every run of codes that pass the test."""
    result: list[tuple[int, int]] = []
    for code in filter(test, CODES):
        if result and result[-1][1] == code - 1:
            result[-1] = (result[-1][0], code)
        else:
            result.append((code, code))
    return result


# Vowel signs and others that begin a grapheme although they are spacing marks (Unicode annex 29, SpacingMark).
BEGINNING_MARKS = {
    0x102B, 0x102C, 0x1038, *range(0x1062, 0x1065), *range(0x1067, 0x106E), 0x1083,
    *range(0x1087, 0x108D), 0x108F, *range(0x109A, 0x109D), 0x1A61, 0x1A63, 0x1A64, 0xAA7B, 0xAA7D,
    0x11720, 0x11721,
}  # fmt: skip
# Joiners, sound marks of half width, vowels of Thai and Lao, skin tones, tags.
EXTENDING = {
    0x200C, 0x200D, 0xFF9E, 0xFF9F, 0x0E33, 0x0EB3, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080),
}  # fmt: skip


def extends_grapheme(code: int) -> bool:
    """Whether a character belongs to the grapheme of the one before it."""
    kind = unicodedata.category(chr(code))
    return (
        kind in ("Mn", "Me") or (kind == "Mc" and code not in BEGINNING_MARKS) or code in EXTENDING
    )


def ends_grapheme(code: int) -> bool:
    """Whether nothing extends a character: controls and line ends."""
    kind = unicodedata.category(chr(code))
    return kind in ("Cc", "Zl", "Zp") or (kind == "Cf" and code not in EXTENDING)


def lower_runs() -> list[tuple[int, int, int, int]]:
    """(first, last, step, offset): every step-th code of first..last maps to itself + offset."""
    result: list[tuple[int, int, int, int]] = []
    for code in CODES:
        lower = chr(code).lower()
        if len(lower) != 1 or ord(lower) == code:
            continue
        offset = ord(lower) - code
        if result:
            first, last, step, known = result[-1]
            gap = code - last
            if offset == known and gap <= 2 and (first == last or gap == step):
                result[-1] = (first, code, gap, offset)
                continue
        result.append((code, code, 1, offset))
    return result


def canonical(code: int) -> list[int]:
    """One step of the canonical decomposition; empty when there is none."""
    text = unicodedata.decomposition(chr(code))
    return [] if not text or text.startswith("<") else [int(part, 16) for part in text.split()]


def decompositions() -> list[tuple[int, int, int, int]]:
    """(code, first, second or 0, 1 when the pair composes again)."""
    rows = []
    for code in CODES:
        parts = canonical(code)
        if parts:
            composes = len(parts) == 2 and unicodedata.normalize("NFC", chr(code)) == chr(code)
            rows.append((code, parts[0], parts[1] if len(parts) == 2 else 0, int(composes)))
    return rows


def combining_runs() -> list[tuple[int, int, int]]:
    """(first, last, canonical combining class), classes other than 0."""
    result: list[tuple[int, int, int]] = []
    for code in CODES:
        kind = unicodedata.combining(chr(code))
        if kind == 0:
            continue
        if result and result[-1][1] == code - 1 and result[-1][2] == kind:
            result[-1] = (result[-1][0], code, kind)
        else:
            result.append((code, code, kind))
    return result


def widths() -> list[tuple[int, int, int]]:
    """Fullwidth and halfwidth forms and what compatibility normalisation makes of them (second code or 0)."""
    rows = [(0x3000, 0x20, 0)]
    for code in range(0xFF01, 0xFFF0):
        plain = unicodedata.normalize("NFKC", chr(code))
        if plain != chr(code):
            rows.append((code, ord(plain[0]), ord(plain[1]) if len(plain) == 2 else 0))
    return rows


def entities() -> list[tuple[str, str]]:
    """HTML 5 entity names (some without the closing semicolon) and their text."""
    return sorted(html.entities.html5.items())


def split_tables() -> list[str]:
    """What the classes in regular expressions and the stages of the `tokenizers` package match."""
    gap = (
        "\x01\x01"  # matched by none of them, so that single characters between pieces are matches
    )
    text = gap + "".join(chr(code) + gap for code in CODES)

    def rows(name: str, stage: PreTokenizer) -> str:
        pieces = [piece for piece, _ in stage.pre_tokenize_str(text)]
        matched = {ord(piece) for piece in pieces if len(piece) == 1}
        return table("Range", name, runs(matched.__contains__))

    def regex(name: str, pattern: str) -> str:
        return rows(name, Split(Regex(pattern), "isolated"))

    return [
        f"// As tokenizers {tokenizers.__version__} splits.\n",
        regex("kSplitLetter", r"\p{L}"),
        regex("kSplitNumber", r"\p{N}"),
        regex("kSplitPunctuation", r"\p{P}"),
        regex("kSplitSpace", r"\s"),
        rows("kStageDigit", Digits(individual_digits=True)),
        rows("kStagePunctuation", Punctuation("isolated")),
        table("Range", "kNormalizerLater", later_runs()),
    ]


def later_runs() -> list[tuple[int, int]]:
    """Codes with an order or a composition that the normalisers of the `tokenizers` package do not know."""
    normalize = NFC().normalize_str

    def is_later(text: str) -> bool:
        return normalize(text) != unicodedata.normalize("NFC", text)

    low, high = "\u0334", "\u0301"  # of the classes 1 and 230
    composed = {row[0]: chr(row[1]) + chr(row[2]) for row in decompositions() if row[3]}

    def test(code: int) -> bool:
        if code in composed and is_later(composed[code]):
            return True
        mark = chr(code)
        return unicodedata.combining(mark) > 0 and (
            is_later("x" + mark + low) or is_later("x" + high + mark)
        )

    return runs(test)


def number(value: int) -> str:
    return f"{value:#x}" if value > 9 else str(value)


def table(kind: str, name: str, rows: Iterable[Iterable[int]]) -> str:
    items = ["{" + ", ".join(number(v) if v >= 0 else str(v) for v in row) + "}" for row in rows]
    return f"constexpr {kind} {name}[] = {{\n{wrap(items)}\n}};\n"


def entity_table() -> str:
    rows = [
        '{"' + name + '", "' + "".join(f"\\x{b:02x}" for b in text.encode()) + '"}'
        for name, text in entities()
    ]
    return f"constexpr Entity kEntities[] = {{\n{wrap(rows)}\n}};\n"


def main() -> None:
    digits = [
        first
        for first, last in runs(lambda c: unicodedata.category(chr(c)) == "Nd")
        for first in range(first, last, 10)
    ]
    assert all(unicodedata.decimal(chr(code)) == 0 for code in digits)
    parts = [
        f"// Made by make_unicode_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.\n",
        table("Range", "kWord", runs(lambda c: chr(c).isalnum() or c == ord("_"))),
        table("Range", "kCased", runs(is_cased)),
        table("Range", "kCaseIgnorable", runs(is_case_ignorable)),
        table("Range", "kExtendsGrapheme", runs(extends_grapheme)),
        table("Range", "kEndsGrapheme", runs(ends_grapheme)),
        f"constexpr char32_t kDigitZero[] = {{\n{wrap(number(code) for code in digits)}\n}};\n",
        table("LowerRun", "kLower", lower_runs()),
        table("Decomposition", "kDecompositions", decompositions()),
        table("CombiningRun", "kCombining", combining_runs()),
        table("Mapping", "kWidths", widths()),
        entity_table(),
        *split_tables(),
    ]
    Path(__file__).with_name("unicode_tables.inc").write_text("\n".join(parts))


def final_sigma(before: str, after: str) -> bool:
    return (before + "Σ" + after).lower()[-1 - len(after)] == "ς"


def is_case_ignorable(code: int) -> bool:
    """Case-ignorable characters may stand between a letter and a final sigma."""
    return (
        chr(code).lower() != "σ"
        and final_sigma("a" + chr(code), "")
        and not final_sigma(chr(code), "")
    )


def is_cased(code: int) -> bool:
    return final_sigma(chr(code), "")


if __name__ == "__main__":
    main()
