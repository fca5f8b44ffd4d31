"""Caption cleaning against Python's regular expressions, on captions made to be hard to search.

Markup and repair of encodings, for which Python has no short definition, are left to the recorded cases:
the captions here hold no "<", no "&" and nothing beyond ASCII.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import urllib.parse
from pathlib import Path

ENDINGS = "png|jpg|jpeg|bmp|webp|eps|pdf|apk|mp4"
SITE = r"[a-zA-Z0-9.\-]+[.](?:com|co|ru|net|org|edu|gov|it)[\w/-]*\b/?(?!@)"
BEFORE = [
    (rf"\b(?:https?:(?:/{{1,3}}|[a-zA-Z0-9%])|{SITE})", ""),
    (rf"\b(?:www:(?:/{{1,3}}|[a-zA-Z0-9%])|{SITE})", ""),
    (r"@[\w\d]+\b", ""),
    (r"-+", "-"),
    (r"`", '"'),
    (r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}", " "),
    (r"\d:\d\d\s+$", ""),
    (r"\\n", " "),
    (r"#\d{1,3}\b", ""),
    (r"#\d{5,}\b", ""),
    (r"\b\d{6,}\b", ""),
    (rf"\S+\.(?:{ENDINGS})", ""),
    (r"[\"']{2,}", '"'),
    (r"\.{2,}", " "),
    (r"[#&@~)(\]\[}{|\\/*]+", " "),
    (r"\s+\.\s+", " "),
]
AFTER = [
    (r"\b[a-zA-Z]{1,3}\d{3,15}\b", ""),
    (r"\b[a-zA-Z]+\d+[a-zA-Z]+\b", ""),
    (r"\b\d+[a-zA-Z]+\d+\b", ""),
    (r"(worldwide\s+)?(free\s+)?shipping", ""),
    (r"(free\s)?download(\sfree)?", ""),
    (r"\bclick\b\s(?:for|on)\s\w+", ""),
    (rf"\b(?:{ENDINGS})(?:\simage[s]?)?", ""),
    (r"\bpage\s+\d+\b", ""),
    (r"\b\d*[a-zA-Z]+\d+[a-zA-Z]+\d+[a-zA-Z\d]*\b", " "),
    (r"\b\d+\.?\d*x\d+\.?\d*\b", ""),
    (r"\b\s+:\s+", ": "),
    (r"(\D[,./])\b", r"\1 "),
    (r"\s+", " "),
]
TRIM = [
    (r"^[\"']([\w\W]+)[\"']$", r"\1"),
    (r"^['_,\-:;]", ""),
    (r"['_,\-:+]$", ""),
    (r"^\.\S+$", ""),
]
PARTS = (
    "1 12 123 12345 123456 a b x A . .. - _ / : , ; # @ % %41 %2e + ' \" ` ( ) * ~ [ ] { } | \\ \\n = ! ?"
    " www http https :// .com co net it .png png jpg .webp free shipping download worldwide click for on"
    " page image images 1.2.3.4 12:34 1920x1080 jc6640 ab12cd j2d1a2a mail@site.org"
).split() + [" ", " ", "  ", "\t", "\n"]


def clean(text: str) -> str:
    """Runs the published cleaning once."""
    text = urllib.parse.unquote_plus(text).strip().lower()
    for pattern, by in BEFORE:
        text = re.sub(pattern, by, text)
    if len(re.findall("[-_]", text)) > 3:
        text = re.sub("[-_]", " ", text)
    text = re.sub(r"[\x00-\x08\x0b\x0e-\x1f\x7f]", "", text).strip()  # out of "%07"
    for pattern, by in AFTER + TRIM:
        text = re.sub(pattern, by, text)
    return text.strip()


def random_text(rng: random.Random) -> str:
    """A random text from parts of all sorts, or from many of a few sorts."""
    parts = PARTS if rng.random() < 0.4 else rng.sample(PARTS, rng.randint(1, 6))
    return "".join(rng.choice(parts) for _ in range(rng.randint(1, 30)))


def test_random_captions(root: Path, build_dir: Path) -> None:
    rng = random.Random(17)
    texts = [random_text(rng) for _ in range(20_000)]
    lines = "".join(json.dumps({"text": text, "cleaning": "llamagen"}) + "\n" for text in texts)
    model = root / "tests/golden/cases/llamagen/llamagen_t5/flan-t5-tiny/spiece.model"
    done = subprocess.run(
        [build_dir / "tokenize", model, "120"],
        input=lines, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    answers = [json.loads(line)["text"] for line in done.stdout.splitlines()]
    for text, answer in zip(texts, answers, strict=True):
        assert answer == clean(clean(text)), text
