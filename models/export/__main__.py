"""Command line: python -m models.export FAMILY ..."""

from __future__ import annotations

import argparse
import sys

from . import chameleon, drafter, llamagen
from .checkpoint import ExportError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m models.export", description=__doc__)
    families = parser.add_subparsers(dest="family", required=True, metavar="FAMILY")
    llamagen.add_parser(families)
    chameleon.add_parsers(families)
    drafter.add_parser(families)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
