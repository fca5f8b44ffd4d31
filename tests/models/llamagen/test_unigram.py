"""Captions of T5 folders that have tokenizer.json alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from llamagen_files import T5_SHAPE, Files

from models.export.llamagen.unigram import spiece_of
from models.export.messages import ExportError

FOLDER = Path(__file__).parents[2] / "golden/cases/llamagen/llamagen_t5/flan-t5-tiny"
TEXTS = (
    "a  red \ufb01sh\u00a0\u00e9  ",
    " \u00bd \u2167 \u65e5\u672c",
    "x\u0085y",
    "it's 100% fine",
    "",
)


def test_the_model_is_the_one_of_the_folder() -> None:
    content, sentinels = spiece_of(FOLDER / "tokenizer.json")
    made = sentencepiece.SentencePieceProcessor(model_proto=content)
    own = sentencepiece.SentencePieceProcessor(str(FOLDER / "spiece.model"))
    assert sentinels == 100 and made.vocab_size() == own.vocab_size()
    for number in range(own.vocab_size()):
        assert made.id_to_piece(number) == own.id_to_piece(number)
        assert made.get_score(number) == own.get_score(number)
        assert made.is_control(number) == own.is_control(number)
    for name in ("pad_id", "eos_id", "unk_id", "bos_id"):
        assert getattr(made, name)() == getattr(own, name)()
    for text in TEXTS:
        assert made.encode(text) == own.encode(text)


def without_sentinels(content: dict[str, Any]) -> None:
    """As files of the fast tokenizer are that keep them among the added tokens alone."""
    content["model"]["vocab"] = content["model"]["vocab"][:1000]


@pytest.mark.parametrize("change", [lambda content: None, without_sentinels])
def test_exported_bundles_take_captions(
    files: Files, tmp_path: Path, change: Callable[[dict[str, Any]], None],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    content = json.loads((FOLDER / "tokenizer.json").read_text())
    change(content)
    files.save_t5(None, **files.states["t5"])
    config = {**T5_SHAPE.__dict__, "feed_forward_proj": "gated-gelu"}
    (files.t5 / "config.json").write_text(json.dumps(config))
    (files.t5 / "tokenizer.json").write_text(json.dumps(content))
    assert files.export("--t5", files.t5) == 4
    assert "the tokenizer has 1100 ids, t5 embeds 160" in capsys.readouterr().err
    state = files.states["t5"] | {"shared.weight": files.states["t5"]["shared.weight"].repeat(7, 1)}
    from safetensors.torch import save_file

    save_file(state, files.t5 / "model.safetensors")
    (files.t5 / "config.json").write_text(json.dumps({**config, "vocab_size": 1120}))
    assert files.export("--t5", files.t5) == 0
    assert "makes it of the pieces of tokenizer.json" in capsys.readouterr().out
    entry = files.manifest()["tokenizer"]
    assert (entry["extra_ids"], entry["eos"], entry["unk"], entry["pad"]) == (100, 1, 2, 0)
    made = sentencepiece.SentencePieceProcessor(str(files.out / "spiece.model"))
    assert made.vocab_size() == 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(type="BPE"), "model is no Unigram"),
        (lambda c: c["model"].update(vocab={}), "model.vocab is no list of pieces"),
        (lambda c: c["model"].update(unk_id=0), "unk_id is 0"),
        (lambda c: c["model"]["vocab"].insert(0, ["<s>", 0.0]), "pieces begin with <s>"),
        (lambda c: c["added_tokens"].append({"id": 7, "content": "<x>"}), "added token <x> has id 7"),
        (lambda c: c["added_tokens"].pop(5), None),
        (lambda c: c.update(normalizer=None), "normalizer has steps None"),
        (lambda c: c["normalizer"]["normalizers"].append({"type": "Lowercase"}), "steps Precompiled"),
        (lambda c: c["normalizer"]["normalizers"][0].update(precompiled_charsmap="?"), "is no base64"),
        (lambda c: c.update(pre_tokenizer={"type": "ByteLevel"}), "pre_tokenizer is not one of spaces"),
    ],
)  # fmt: skip
def test_other_tokenizers_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str | None
) -> None:
    content = json.loads((FOLDER / "tokenizer.json").read_text())
    change(content)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(content))
    if message is None:  # sentinels among the pieces are enough
        assert spiece_of(file)[1] == 100
        return
    with pytest.raises(ExportError, match="give --spiece FILE") as error:
        spiece_of(file)
    assert message in str(error.value)
