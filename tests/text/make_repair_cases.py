"""Writes repair_cases.inc: odd captions, and what ftfy.fix_text() makes of them.

Usage: pip install ftfy==6.3.1; python tests/text/make_repair_cases.py
"""

from __future__ import annotations

import random
from pathlib import Path

import ftfy
from ftfy.badness import MOJIBAKE_CATEGORIES
from ftfy.chardata import CHARMAP_ENCODINGS, UTF8_CLUES

CASES = 240
CAPTIONS = """\
a café in the rain, “crème brûlée”|Ein Mädchen läuft über die Straße|un niño come piñas — qué rico…
la città è più bella, à la mode|às oito, àquela hora|красная лодка в море|το κόκκινο καράβι|赤い船が海に|빨간 배가
قارب أحمر|लाल नाव समुद्र में|červená loď, žluťoučký kůň|źdźbło i łódź|kırmızı ğüşiöç|jūra, šaltibarščiai
a cat 😀 with a hat 🎩|5 € or £7, ½ cup, 30° ± 2 µm|a red boat on the sea at dawn|Ærø og smørrebrød™
dogs & cats &eacute; ＆amp; &notit; &#233;|<b> &eacute;|ﬁne ＬＯＵＤ ｱｲｳ|a\r\nb\u2028c\x85d\x1b[31me\x07\ufeff"""
CLUES = sorted(set("".join([*UTF8_CLUES.values(), *MOJIBAKE_CATEGORIES.values()])))


def halves(text: str) -> bytes:
    """UTF-8 of UTF-16's halves of characters, and of zero bytes in two bytes."""
    units = text.encode("utf-16-be")
    codes = [units[i] << 8 | units[i + 1] for i in range(0, len(units), 2)]
    parts = (b"\xc0\x80" if c == 0 else chr(c).encode("utf-8", "surrogatepass") for c in codes)
    return b"".join(parts)


def garbled(rng: random.Random, text: str) -> str:
    """A text that was read in another encoding, sometimes damaged further."""
    charset = rng.choice(CHARMAP_ENCODINGS[:2] if rng.random() < 0.6 else CHARMAP_ENCODINGS)
    text = (halves(text) if rng.random() < 0.1 else text.encode()).decode(charset)
    damage = {
        "\xa0": rng.choice("\xa0\xa0 "),
        **dict.fromkeys(map(chr, range(0x80, 0xA0)), rng.choice(["", "", "\ufffd", "?"])),
    }
    return "".join(damage.get(c) or c for c in text)


def odd_text(rng: random.Random) -> str:
    """A clean caption, a garbled one, one of both, or characters that mojibake has."""
    one, two = (rng.choice(CAPTIONS.replace("\n", "|").split("|")) for _ in range(2))
    kind = rng.random()
    if kind < 0.2:
        return one
    if kind < 0.6:
        return garbled(rng, garbled(rng, one) if rng.random() < 0.2 else one)
    if kind < 0.85:
        return one + rng.choice([" ", "\n", ""]) + garbled(rng, two)
    return "".join(rng.choice([*CLUES, "a", "A", " "]) for _ in range(rng.randint(2, 9)))


def literal(text: str) -> str:
    return '"' + "".join(f"\\{byte:03o}" if byte < 32 or byte > 126 or chr(byte) in '"\\?' else chr(byte)
                         for byte in text.encode()) + '"'  # fmt: skip


def main() -> None:
    rng = random.Random(5)
    texts: list[str] = []
    while len(texts) < CASES:
        text = odd_text(rng)
        if "\0" not in text and text not in texts:
            texts.append(text)
    lines = [f"    {{{literal(text)},\n     {literal(ftfy.fix_text(text))}}},\n" for text in texts]
    head = f"// Made by make_repair_cases.py with ftfy {ftfy.__version__}. Do not edit.\n"
    cases = "constexpr RepairCase kRepairCases[] = {\n" + "".join(lines) + "};\n"
    Path(__file__).with_name("repair_cases.inc").write_text(head + cases)


if __name__ == "__main__":
    main()
