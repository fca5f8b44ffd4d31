"""Writes bundles from published checkpoints, and attaches drafters to them."""

from __future__ import annotations

import argparse

from .chameleon import command as chameleon
from .command import run_command
from .drafters import draft_model, eagle, eagle3, flash, heads, refine
from .emu3 import command as emu3
from .glm_image import command as glm_image
from .janus import command as janus
from .llamagen import command as llamagen
from .lumina2 import command as lumina2
from .mar import command as mar
from .names import WEIGHTS, Wish, tell_unmet
from .simplear import command as simplear
from .tar import command as tar
from .tar import detokenizer as tar_decoder


def main(arguments: list[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="lamplighter-export", description=__doc__)
    families = parser.add_subparsers(dest="family", required=True, metavar="FAMILY")
    llamagen.add_parser(families)
    chameleon.add_parsers(families)
    janus.add_parser(families)
    lumina2.add_parser(families)
    simplear.add_parser(families)
    emu3.add_parser(families)
    glm_image.add_parser(families)
    tar.add_parser(families)
    tar_decoder.add_parser(families)
    mar.add_parser(families)
    eagle.add_parser(families)
    eagle3.add_parser(families)
    flash.add_parser(families)
    draft_model.add_parser(families)
    heads.add_parsers(families)
    refine.add_parser(families)
    for family in families.choices.values():
        family.add_argument(
            "--weights",
            metavar="NAME",
            help='which weights of a checkpoint that has several: "ema" for averaged, "model" for raw ones, '
            "or the key or prefix of one; default: what the official program takes, if it takes one of them",
        )
    options = parser.parse_args(arguments)
    WEIGHTS.set(Wish(options.weights) if options.weights else None)
    return run_command(lambda: (options.run(options), tell_unmet()))
