"""Writes bundles from published checkpoints, and attaches drafters to them."""

from __future__ import annotations

import argparse
import signal
import sys

from .chameleon import command as chameleon
from .command import run_command
from .drafters import draft_model, eagle, eagle3, flash, heads, refine
from .janus import command as janus
from .llamagen import command as llamagen
from .lumina2 import command as lumina2
from .mar import command as mar
from .simplear import command as simplear


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m models.export", description=__doc__)
    families = parser.add_subparsers(dest="family", required=True, metavar="FAMILY")
    llamagen.add_parser(families)
    chameleon.add_parsers(families)
    janus.add_parser(families)
    lumina2.add_parser(families)
    simplear.add_parser(families)
    mar.add_parser(families)
    eagle.add_parser(families)
    eagle3.add_parser(families)
    flash.add_parser(families)
    draft_model.add_parser(families)
    heads.add_parsers(families)
    refine.add_parser(families)
    options = parser.parse_args(arguments)
    return run_command(lambda: options.run(options))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # half-written folders go away
    sys.exit(main())
