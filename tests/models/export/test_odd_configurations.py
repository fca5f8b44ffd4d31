"""Configurations that people have: what is read, what is refused in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import janus_files
import pytest
import simplear_files
from export_run import refused
from llamagen_files import CONFIG, Files

from models.export.__main__ import main
from models.export.settings import Settings, read_settings
from models.export.simplear.weights import simplear_config

CONVERTED = Path(__file__).parents[2] / "golden/cases/llamagen/llamagen_end_to_end_t2i/target_hf"


@pytest.fixture(scope="module")
def simplear(tmp_path_factory: pytest.TempPathFactory) -> simplear_files.Files:
    folder = tmp_path_factory.mktemp("simplear")
    return simplear_files.Files(
        folder, simplear_files.random_state(simplear_files.SHAPE), "safetensors"
    )


def settings_of(files: simplear_files.Files) -> dict[str, Any]:
    return dict(json.loads((files.model / "config.json").read_text()))


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    """With everything inside."""
    return {"architectures": ["x"], "model_type": "llava", "text_config": settings}


def rope_parameters(settings: dict[str, Any]) -> dict[str, Any]:
    base = settings.pop("rope_theta")
    return {
        **settings,
        "rope_parameters": {"rope_type": "default", "rope_theta": base},
        "dtype": "bfloat16",
    }


@pytest.mark.parametrize(
    "change",
    [
        rope_parameters,
        nested,
        lambda s: nested(rope_parameters(s)),
        lambda s: {**s, "rope_scaling": {"type": "default"}},
        lambda s: {**s, "rope_scaling": None, "rope_parameters": {"rope_theta": 500}},
        lambda s: {**s, "layer_types": ["full_attention"] * 3},
    ],
)
def test_layouts_of_transformers(
    simplear: simplear_files.Files, change: Any, tmp_path: Path
) -> None:
    from models.export.config_file import Section

    (tmp_path / "config.json").write_text(json.dumps(change(settings_of(simplear))))
    assert simplear_config(Section.read(tmp_path / "config.json")) == simplear_files.SHAPE


def test_nested_descriptions_are_exported(
    simplear: simplear_files.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also what ties the head is read inside."""
    file = simplear.model / "config.json"
    before = file.read_text()
    settings = nested(rope_parameters(settings_of(simplear)))
    try:
        file.write_text(json.dumps(settings))
        assert simplear.export("--overwrite") == 0
        file.write_text(json.dumps({**settings, "tie_word_embeddings": False}))
        assert simplear.export("--overwrite") == 4
        error = capsys.readouterr().err
        assert "tie_word_embeddings is false, and true in text_config; expected one value" in error
    finally:
        file.write_text(before)
        shutil.rmtree(simplear.out)


DEEP = '{"a": ' * 5000 + "1" + "}" * 5000
ODD_CONFIGS = [
    ({"rope_theta": ...}, "rope_theta is missing, expected the base of the rotations"),
    ({"rms_norm_eps": ...}, "rms_norm_eps is missing, expected a value, because images depend on it"),
    ({"num_attention_heads": ...}, "num_attention_heads is missing"),
    ({"hidden_size": ...}, "hidden_size is missing"),
    ({"max_position_embeddings": ...}, "max_position_embeddings is missing"),
    ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, expected a whole number from 1 to 1000"),
    ({"max_position_embeddings": 10**9}, "expected a whole number from 1 to 16777216"),
    ({"hidden_size": 0}, "hidden_size is 0, expected a whole number from 1"),
    ({"hidden_size": "64"}, 'hidden_size is "64", expected a whole number'),
    ({"hidden_size": 32.0}, "hidden_size is 32.0, expected a whole number"),
    ({"num_attention_heads": True}, "num_attention_heads is true, expected a whole number"),
    ({"rms_norm_eps": "1e-3"}, "rms_norm_eps is 1e-3, expected a positive number"),
    ({"rms_norm_eps": 0}, "rms_norm_eps is 0, expected a positive number"),
    ({"rms_norm_eps": [1]}, "rms_norm_eps is [1], expected a positive number"),
    ({"rope_theta": -1.0}, "rope_theta is -1.0, expected a positive number"),
    ({"rope_theta": 1e-30}, "rope_theta is 1e-30, expected a number from 1 to 1e+12"),
    ({"rope_theta": ..., "rope_parameters": {"rope_theta": 0.5}}, "rope_parameters.rope_theta is 0.5, expected a number from 1"),
    ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "expected rotations of type default"),
    ({"rope_parameters": {"full_attention": {"rope_theta": 1.0}}}, "expected rotations of type default"),
    ({"rope_parameters": {"rope_theta": 7.0}}, "rope_theta is 500 and rope_parameters.rope_theta is 7"),
    ({"rope_parameters": 3}, "rope_parameters is 3, expected an object"),
    ({"rope_parameters": 0}, "rope_parameters is 0, expected an object"),
    ({"rope_parameters": {"rope_type": []}}, "expected rotations of type default"),
    ({"rope_scaling": {"type": 0}}, "expected rotations of type default"),
    ({"layer_types": {}}, "layer_types is {}, expected full_attention alone"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5, expected 1.0"),
    ({"text_config": {"hidden_size": 48}}, "hidden_size is 32, and 48 in text_config; expected one value"),
    ({"quantization_config": {"quant_method": "gptq"}}, "the model is quantised (gptq), expected weights in"),
    ({"layer_types": ["sliding_attention"]}, "expected full_attention alone"),
    ({"tie_word_embeddings": "true"}, 'tie_word_embeddings is "true", expected true or false'),
    ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is yes, expected true or false"),
    (DEEP, "not valid JSON: nested too deeply"),
    ('{"a": 1, "a": 2}', "not valid JSON: key a stands there twice"),
    ('{"rope_theta": NaN}', "NaN is no number of JSON"),
    ('{"rope_theta": 1e999}', "1e999 is too large a number"),
    ('{"vocab_size": ' + "9" * 5000 + "}", "is too large a number"),
    ("[1]", "expected a JSON object, got list"),
    ("\x00", "not valid JSON"),
    ("", "not valid JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), ODD_CONFIGS, ids=range(len(ODD_CONFIGS)))
def test_odd_configurations(
    simplear: simplear_files.Files, change: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = simplear.model / "config.json"
    before = file.read_text()
    settings = json.loads(before)
    if isinstance(change, str):
        file.write_text(change)
    else:
        changed = {**settings, **change}
        file.write_text(json.dumps({k: v for k, v in changed.items() if v is not ...}))
    try:
        assert message in refused(simplear, capsys, 4)
    finally:
        file.write_text(before)


def test_defaults_of_nested_parts_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Published Janus-Pro folders leave out what equals Llama's defaults."""
    state = janus_files.random_state(janus_files.SHAPE)
    files = janus_files.Files(tmp_path, state, "safetensors")
    for key in ("rope_theta", "rms_norm_eps"):
        files.change("config.json", "language_config", key, value=...)
    from models.export.janus.weights import read_folder as read_janus

    config = read_janus(files.model).weights.config
    assert (config.rope_base, config.norm_eps) == (10000.0, 1e-6)
    out = capsys.readouterr().out
    assert (
        "language_config leaves out what equals the defaults: rope_theta 10000.0, rms_norm_eps 1e-06"
        in out
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_head", "2"), ("n_head", 10**9), ("n_head", 0), ("n_head", [2]), ("grid", "4"), ("grid", 4.5),
        ("block_size", "16"), ("rope_base", "10000"), ("rope_base", 0), ("norm_eps", -1), ("dim", True),
        ("prefix_rotation", 3),
    ],
)  # fmt: skip
def test_odd_values_of_config(
    files: Files, name: str, value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write_config({"gpt": {**CONFIG["gpt"], name: value}})
    assert files.export_gpt() in (2, 4)
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and name in error


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hidden_size", 160, 80), ("num_hidden_layers", 3, 2), ("vocab_size", 513, 512), ("vocab_size", "512", 512),
        ("intermediate_size", 10**9, 256), ("caption_dim", 65, 64), ("cls_token_num", 0, 120),
        ("num_attention_heads", 5, None), ("num_key_value_heads", 2, 4),
    ],
)  # fmt: skip
def test_converted_folders_whose_sizes_contradict_the_weights(
    name: str, value: Any, expected: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """5 heads fit the weights, too, but not with 4 heads of keys."""
    model = tmp_path / "model"
    shutil.copytree(CONVERTED, model)
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**settings, name: value}))
    assert main(["llamagen", "--gpt", str(model), "--out", str(tmp_path / "bundle")]) == 4
    error = capsys.readouterr().err
    message = f"{name} is {json.dumps(value)}, expected {expected}"
    message = message if expected else "num_key_value_heads is 4, expected 5"
    assert error == f"error: {model / 'config.json'}: {message}\n"


def test_sizes_of_a_file_are_blamed_on_the_file(
    simplear: simplear_files.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    before = simplear.config.read_text()
    simplear.config.write_text(json.dumps({**json.loads(before), "sizes": ["64*64"]}))
    try:
        error = refused(simplear, capsys, 2)
    finally:
        simplear.config.write_text(before)
    assert error.startswith(f"error: {simplear.config}: sizes: got '64*64', expected WIDTHxHEIGHT")


ODD_SAMPLING: list[tuple[Any, str]] = [
    ({"temperature": -0.5}, "sampling.temperature is -0.5, expected a number from 0 to 1e+06"),
    ({"temperature": "1"}, 'sampling.temperature is "1", expected a number'),
    ({"temperature": True}, "sampling.temperature is true, expected a number"),
    ({"cfg_scale": -1}, "sampling.cfg_scale is -1, expected a number from 0 to 1e+06"),
    ({"cfg_scale": 2e6}, "sampling.cfg_scale is 2000000.0, expected"),
    ({"cfg_scale": [3]}, "sampling.cfg_scale is [3], expected"),
    ({"top_k": -1}, "sampling.top_k is -1, expected a whole number from 0"),
    ({"top_k": 8.0}, "sampling.top_k is 8.0, expected a whole number"),
    ({"top_p": 0}, "sampling.top_p is 0, expected a number above 0, at most 1"),
    ({"top_p": 1.5}, "sampling.top_p is 1.5, expected"),
    ({"order": "random"}, "sampling.order is random, expected one of ar, eagle"),
    ({"order": ["ar"]}, 'sampling.order is ["ar"], expected one of'),
    ({"seed": 1}, "unknown key sampling.seed, expected cfg_scale,"),
    ({"schedule": {"kind": "cosine"}}, "sampling.schedule.kind is cosine, expected one of constant, linear, decay"),
    ({"schedule": {}}, "sampling.schedule.kind is missing"),
    ({"schedule": {"kind": "linear", "floor": 2}}, "unknown key sampling.schedule.floor, expected kind"),
    ({"schedule": {"kind": "decay"}}, "sampling.schedule.floor is missing"),
    ({"schedule": {"kind": "decay", "floor": 0.5}}, "sampling.schedule.floor is 0.5, expected a number from 1"),
    ({"schedule": {"kind": "decay", "floor": 1, "share": 0}}, "sampling.schedule.share is 0, expected"),
    ({"schedule": {"kind": "decay", "floor": 1, "raise": 1}}, "sampling.schedule.raise is 1, expected true or"),
    ({"schedule": "linear"}, "sampling.schedule is linear, expected an object"),
    (7, "sampling is 7, expected an object"),
]  # fmt: skip


@pytest.mark.parametrize(("sampling", "message"), ODD_SAMPLING, ids=range(len(ODD_SAMPLING)))
def test_odd_sampling(
    simplear: simplear_files.Files,
    sampling: Any,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Refused before weights are read, with the file's name."""
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"sampling": sampling}))
    assert f"{file}: {message}" in refused(simplear, capsys, 2, "--config", file)


def test_sampling_of_the_engine_is_taken(tmp_path: Path) -> None:
    """What the engine reads from a manifest; null stands for the family's own value."""
    file = tmp_path / "settings.json"
    decay = {"kind": "decay", "floor": 2, "share": 0.5, "raise": True}
    wanted = {"temperature": 0, "cfg_scale": 7, "top_k": 0, "order": "eagle", "schedule": decay}
    file.write_text(json.dumps({"sampling": {**wanted, "top_p": None}}))
    published = Settings([(512, 512)], 64, {"top_p": 0.5})
    assert read_settings(file, published).sampling == wanted
    assert read_settings(None, published).sampling == {"top_p": 0.5}
