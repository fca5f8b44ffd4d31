"""Writes bundles: a folder of TorchScript archives and data files described by manifest.json.

Bundle.write makes one; edited changes one that exists.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import torch
from torch import Tensor, nn

from . import ops
from .archive import write_archive
from .recording import Call, Recorder, inputs_in, made, save_tensors
from .rounding import round_products
from .scratch import clean_leftovers, temporary

SCHEMA_VERSION = 1
OPTIONAL_METHODS = ("forward_layers", "forward_features", "text_logits")  # of targets
ROOT = Path(__file__).resolve().parent.parent
SCHEMA_FILE = ROOT / "src/bundle/manifest/manifest.schema.json"
DTYPE_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


def version() -> str:
    """The project's version."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(lamplighter VERSION ([0-9.]+)", text)
    assert found
    return found[1]


@dataclass(frozen=True)
class Storage:
    """How weights are stored: their precision, and the bits of rounded products."""

    dtype: torch.dtype
    bits: int | None = None

    @property
    def name(self) -> str:
        return f"int{self.bits}" if self.bits else DTYPE_NAMES[self.dtype]


@dataclass
class BundleModule:
    """A module to script; the weights are stored in `dtype`, the precision they have already, those
    of products in 8 or 4 bits where `bits` says so."""

    module: nn.Module
    dtype: torch.dtype
    calls: Sequence[Call] = ()
    entries: dict[str, Any] = field(default_factory=dict)  # further keys of its manifest entry
    # Gives the module prepared like a tensor, for recording a model that memory cannot hold in fp32;
    # by default the archive is loaded and prepared.
    prepared: Callable[[Tensor], nn.Module] | None = None
    bits: int | None = None


@dataclass
class Bundle:
    """Content of a bundle. `entries` are further keys of the manifest (prompt, tokens, ...)."""

    name: str
    family: str
    licence: str
    source: str
    modules: dict[str, BundleModule] = field(default_factory=dict)
    drafters: dict[str, BundleModule] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    entries: dict[str, Any] = field(default_factory=dict)
    log: Callable[[str], None] = lambda line: None  # gets one line before each long step

    def write(self, out: Path, overwrite: bool = False) -> None:
        """Writes the folder `out`; it appears complete or not at all."""
        if out.exists() and not overwrite:
            raise FileExistsError(f"{out} exists already")
        ops.load()
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as folder:
            self._fill(folder)

    def _fill(self, folder: Path) -> None:
        for name, path in self.files.items():
            shutil.copyfile(path, folder / name)
        for name, tensors in self.tensors.items():
            save_tensors(tensors, folder / name)
        recorded = Recorder()
        manifest: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "family": self.family,
            "exporter": {"version": version(), "torch": torch.__version__.partition("+")[0]},
            "licence": self.licence,
            "source": self.source,
            "files": {},
        }
        for kind, parts in (("modules", self.modules), ("drafters", self.drafters)):
            manifest[kind] = {}
            for role, part in parts.items():
                self.log(f"writing and recording {role}")
                add_part(folder, manifest, recorded, kind, role, part)
        manifest.update(self.entries)
        recorded.save(folder, manifest)
        self.log("computing checksums")
        write_manifest(folder, manifest)


def add_part(
    folder: Path,
    manifest: dict[str, Any],
    recorded: Recorder,
    kind: str,
    role: str,
    part: BundleModule,
) -> None:
    """Writes the archive of a module (kind "modules") or drafter, its entry and its records."""
    path = folder / (f"{role}.pt" if kind == "modules" else f"drafter-{role}.pt")
    dtype = torch.bfloat16 if part.bits else torch.float32
    exact = []
    if part.bits:
        exact = results_in(part, dtype, path)
        round_products(part.module, part.bits)
    check_range(role, part.module)
    write_archive(part.module, path)
    stored = Storage(part.dtype, part.bits)
    manifest[kind][role] = {"file": path.name, "dtype": stored.name, **part.entries}
    more = [name for name in OPTIONAL_METHODS if hasattr(part.module, name)]
    if more and kind == "modules":
        manifest[kind][role]["methods"] = more
    if part.calls:
        recorded.record(role, prepared_module(part, dtype, path), part.calls, dtype, exact)


def check_range(role: str, module: nn.Module) -> None:
    """ValueError: finite weights became infinite in fp16."""
    for name, tensor in module.state_dict().items():
        if tensor.dtype != torch.float16 or not tensor.numel():
            continue
        if not all(bound.isfinite() for bound in torch.aminmax(tensor)):
            raise ValueError(
                f"{role}: {name} has values beyond 65504, the largest of fp16; store it with --dtype "
                "bf16 or fp32"
            )


def results_in(part: BundleModule, dtype: torch.dtype, path: Path) -> list[list[Tensor]]:
    """Results of the calls of a module before it is rounded; `path` is used for a while."""
    if part.prepared is None:
        write_archive(part.module, path)
    module = prepared_module(part, dtype, path)
    results = [made(call, module, inputs_in(call, dtype)) for call in part.calls]
    path.unlink(missing_ok=True)
    return results


@torch.inference_mode()
def prepared_module(part: BundleModule, dtype: torch.dtype, archive: Path) -> nn.Module:
    """The module in `dtype`, as the engine would have it."""
    like = torch.empty(0, dtype=dtype)
    if part.prepared:
        return part.prepared(like)
    module = torch.jit.load(str(archive), map_location="cpu")
    module.prepare(like)
    return module


@contextmanager
def edited(bundle: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A copy of a bundle and its manifest to be changed; the copy replaces the bundle at the end.

    An error in between leaves the bundle as it was. The copy's files are links to the old ones:
    unlink before writing to a name that exists.
    """
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    with replacing(bundle) as folder:
        for name in manifest["files"]:
            if Path(name).name != name:
                raise ValueError(f"{bundle}/manifest.json: files: {name} is no plain file name")
            if (bundle / name).resolve().parent != bundle.resolve():
                raise ValueError(f"{bundle / name} is a link out of the bundle's folder")
            link_or_copy(bundle / name, folder / name)
        yield folder, manifest
        kept = {
            name: entry
            for name, entry in manifest["files"].items()
            if (folder / name).is_file() and (folder / name).samefile(bundle / name)
        }
        listed = set(manifest["files"])
        write_manifest(folder, manifest, kept)
        for path in bundle.iterdir():  # what lies in the folder but is none of the bundle's
            if path.name not in listed and not (folder / path.name).exists():
                link_or_copy(path, folder / path.name)


def link_or_copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
        return
    try:
        os.link(source.resolve(), target)
    except OSError:  # not every file system has links
        shutil.copyfile(source, target)


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """An empty folder that takes the place of `out` at the end; on an error `out` stays."""
    clean_leftovers(out)
    with temporary(out, "new") as folder:
        yield folder
        for path in folder.iterdir():  # temporary files start out private
            if path.is_file():
                path.chmod(0o644)
        folder.chmod(0o755)
        replace_folder(folder, out)


def write_manifest(
    folder: Path, manifest: dict[str, Any], known: dict[str, Any] | None = None
) -> None:
    """Writes manifest.json; `known` are entries of files that need not be read again."""
    known = known or {}
    names = sorted(path.name for path in folder.iterdir())
    manifest["files"] = {name: known.get(name) or describe(folder / name) for name in names}
    check_manifest(manifest)
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def check_manifest(manifest: dict[str, Any]) -> None:
    """ValueError names the first entry that the schema refuses."""
    schema = json.loads(SCHEMA_FILE.read_text())
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(manifest)
    )
    if error is not None:
        raise ValueError(f"manifest {error.json_path}: {error.message}")


def describe(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    with path.open("rb") as stream:
        return {
            "bytes": path.stat().st_size,
            "sha256": hashlib.file_digest(stream, "sha256").hexdigest(),
        }


def replace_folder(new: Path, out: Path) -> None:
    """Moves the folder `new` to `out`, on the disk and in one step; an old `out` becomes `new`."""
    for path in (*new.rglob("*"), new):
        sync(path)
    if not out.exists():
        os.rename(new, out)
    elif not exchange(new, out):
        with temporary(out, "old") as old:
            os.rename(out, old / out.name)
            try:
                os.rename(new, out)
            finally:
                os.rename(old / out.name, new if out.exists() else out)
    sync(out.parent)


def exchange(one: Path, other: Path) -> bool:
    """Gives two folders each other's names; False where the system cannot do that."""
    at_folder, flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    names = [os.fsencode(path.absolute()) for path in (one, other)]
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(at_folder, names[0], at_folder, names[1], flag) == 0


def sync(path: Path) -> None:
    """Forces a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
