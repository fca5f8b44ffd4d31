"""Checks that code, help and documents use the terms of the field instead of the words in BANNED."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Pattern of a word and the words to use. A capital also begins a word inside a name: `JointLaw`, `LawTest`.
BANNED = {
    "propos(?:e|es|ed|er|ers|ing)": "draft, draft method",
    "judg(?:e|es|ed|ing|ment)": "verify",
    "laws?": "distribution",
    "seams?": "interface",
    "pictures?": "image",
    "draw(?:n|s|ings?)?": "sample (a token), generate (an image)",
    "drew": "sampled, generated",
    "paint(?:ed|ers?|ing)": "decode (an image)",
    "told": "reported",
    "such(?! as )": "the noun itself",
    "so many": "the number or its name",
    "those of": "the noun itself",
    "stand-?ins?": "placeholder",
}
# Paths where a word is right: rendering code draws and paints, captions say "a picture of", recorded cases have keys
# of their own, and the changelog names renamed keys.
RECORDS = ("CHANGELOG.md", "tests/golden/")
ALLOWED = {
    "draw": (*RECORDS, "models/demo/render/", "src/batch/gallery/", "src/bench/page/", "src/image/", "src/serve/page/"),
    "judg": RECORDS,
    "law": RECORDS,
    "paint": ("models/demo/render/", "src/image/", "src/serve/page/", "tests/e2e/serve/"),
    "picture": (*RECORDS, "models/demo/render/"),
    "propos": RECORDS,
}  # fmt: skip
# Names of other projects, messages of the system, and the second name of a flag.
FOREIGN = re.compile(
    r"DrawBench|ImageDraw(?:\.Draw)?|--pictures|[Nn]o[ _/]such|none such|'drawn' in document"
)
SUFFIXES = {".c", ".cmake", ".cpp", ".cu", ".cuh", ".h", ".html", ".js", ".json", ".md", ".py", ".pyi", ".sbatch", ".sh", ".txt", ".yaml"}  # fmt: skip
# Data, files of other projects, and this list.
SKIPPED = re.compile(
    r"\.min\.js$|^LICENSE|/cases/|/corpus/|^tests/golden/.*\.txt$|^(models|scripts/results|tests)/.*\.json$|check_words\.py$"
)


def word_pattern(word: str) -> str:
    """Matches a word in text, snake_case and CamelCase, but not inside a longer word."""
    capital = re.sub(r"(^|\|)([a-z])", lambda m: m[1] + m[2].upper(), word)
    return f"(?<![A-Za-z])(?i:{word})(?![a-z])|(?:{capital})(?![a-z])"


PATTERNS = {word: re.compile(word_pattern(word)) for word in BANNED}
# Beginnings of the words: most lines have none, which a search for plain text finds quickly.
STEMS = [re.match(r"[a-z ]+", word)[0].rstrip("s") for word in BANNED]  # type: ignore[index]


def is_allowed(word: str, path: str) -> bool:
    return any(word.startswith(stem) and path.startswith(paths) for stem, paths in ALLOWED.items())


def check(path: str, text: str) -> list[str]:
    """The problems of one file: `path:line: "word"; use ...`."""
    problems = []
    patterns = {word: pattern for word, pattern in PATTERNS.items() if not is_allowed(word, path)}
    for number, line in enumerate(text.splitlines(), 1):
        lower = line.lower()
        if not any(stem in lower for stem in STEMS):
            continue
        line = FOREIGN.sub("", line)
        problems += [
            f'{path}:{number}: "{match[0]}"; use {BANNED[word]}'
            for word, pattern in patterns.items()
            for match in pattern.finditer(line)
        ]
    return problems


def files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    return [p for p in listed if Path(p).suffix in SUFFIXES and not SKIPPED.search(p)]


def main() -> int:
    paths = [path for path in files() if (ROOT / path).is_file()]
    problems = [
        problem
        for path in paths
        for problem in check(path, (ROOT / path).read_text(encoding="utf-8"))
    ]
    for problem in problems:
        print(problem)
    print(f"words: {len(paths)} files, {len(problems)} problems")
    return 1 if problems or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
