"""MAR: features of encoder and decoder, schedules, tables, single steps, chains and whole runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import continuous_loop as loop
import golden_continuous as recorded
import golden_engine as engine
import golden_mar as mar
import pytest
import torch
from continuous_loop import Image, RandomNumbers, Settings
from golden_cases import Case
from torch import Tensor

from models.mar.diffusion import Schedule, schedule
from models.mar.network import MAR, time_features

KINDS = ("continuous/mar",)


@pytest.fixture(scope="module")
def model(case: Case) -> MAR:
    dims = case.info["dims"]
    path = case.folder / case.info["weights"]["file"]
    return mar.read(path, dims["encoder_heads"], dims["decoder_heads"])


def test_sizes(case: Case, model: MAR) -> None:
    facts, config = case.info["dims"], model.config
    expected = {
        "sequence_length": config.positions,
        "latent_channels": config.channels,
        "buffer_tokens": config.buffer,
        "classes": config.classes,
        "encoder_dim": config.encoder.dim,
        "encoder_depth": config.encoder.depth,
        "decoder_dim": config.decoder.dim,
        "decoder_depth": config.decoder.depth,
        "diffloss_depth": config.head_depth,
        "diffloss_width": config.head_width,
    }
    assert expected == {name: facts[name] for name in expected}


def forward_inputs(case: Case, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, what is visible, classes."""
    masked = case.tensors[f"fwd.{k}.mask"].bool()
    return case.tensors["fwd.tokens"], ~masked, case.long("fwd.labels")


def test_masks(case: Case) -> None:
    """A mask of length n covers the first n of an order."""
    orders = case.long("fwd.orders")
    for k, length in enumerate(case.tensors["fwd.mask_lens"].tolist()):
        mask = torch.zeros_like(orders).scatter(1, orders[:, :length], 1)
        assert torch.equal(mask, case.long(f"fwd.{k}.mask"))


@torch.inference_mode()
def test_features(case: Case, model: MAR) -> None:
    for k in range(len(case.tensors["fwd.mask_lens"])):
        tokens, visible, classes = forward_inputs(case, k)
        taken = record(model, tokens, visible, classes)
        names = [name for name in taken if case.has(f"fwd.{k}.{name}")]
        assert {"enc", "z"} <= set(names)
        for name in names:
            engine.assert_recorded(case, f"fwd.{k}.{name}", taken[name], "fwd")


def record(model: MAR, tokens: Tensor, visible: Tensor, classes: Tensor) -> dict[str, Tensor]:
    """Every stage of the plain network by its recorded name."""
    taken = {"z_proj_ln": model.embed(tokens, classes)}
    named = {f"enc_block{i}": block for i, block in enumerate(model.encoder_blocks)}
    named |= {f"dec_block{i}": block for i, block in enumerate(model.decoder_blocks)}
    named |= {"dec_embed": model.decoder_embed, "dec_norm": model.decoder_norm}
    hooks = [
        module.register_forward_hook(lambda _, x, out, name=name: taken.update({name: out}))
        for name, module in named.items()
    ]
    taken["enc"] = model.encode(tokens, visible, classes)
    taken["z"] = model.decode(taken["enc"], visible)
    for hook in hooks:
        hook.remove()
    return taken


@torch.inference_mode()
def test_context(case: Case, model: MAR) -> None:
    """All passes at once, with and without label: images of different numbers of visible tokens."""
    module, parts, expected = mar.scripted(model, "7"), [], []
    for k in range(len(case.tensors["fwd.mask_lens"])):
        tokens, visible, classes = forward_inputs(case, k)
        hidden = tokens.masked_fill(~visible[..., None], torch.nan)
        for labels in (classes, torch.full_like(classes, model.config.classes)):
            parts.append((hidden, visible, labels))
        expected.append(case.tensors[f"fwd.{k}.z_cfg"])
    z = module.context(*(torch.cat(column) for column in zip(*parts, strict=True)))
    engine.assert_close("z", z, torch.cat(expected), case.tolerance("fwd"))


# The authors compute a pass's guidance scale from an fp32 count of masked tokens: a few roundings.
ROUNDING = 4 * torch.finfo(torch.float32).eps


def test_schedules(case: Case) -> None:
    table = json.loads((case.folder / "mask_schedule.json").read_text(encoding="utf-8"))
    assert table
    for name, entry in table.items():
        positions, steps = map(int, re.fullmatch(r"L(\d+)_iter(\d+)", name).groups())
        lengths = loop.mask_lengths(positions, steps)
        assert lengths == entry["mask_len"], name
        assert loop.predicted(positions, steps) == entry["predicted"], name
        for key, expected in entry.items():
            if found := re.fullmatch(r"cfg_(\w+)_for_cfg([\d.]+)", key):
                cfg = float(found[2])
                got = [loop.guidance_scale(cfg, found[1], m, positions) for m in lengths]
                assert got == pytest.approx(expected, rel=ROUNDING), name


def test_tables(case: Case) -> None:
    names = {tuple(name.split(".")[1:]) for name in case.tensors if name.startswith("sched.")}
    assert names
    for spacing, table in names:
        respacing = "" if spacing == "full1000" else spacing.replace("_", ",")
        found = schedule(respacing)
        if table == "timestep_map":
            assert torch.equal(found.steps, case.long(f"sched.{spacing}.{table}"))
            continue
        got, expected = getattr(found, table), case.tensors[f"sched.{spacing}.{table}"]
        relative = case.tolerance("sched")
        torch.testing.assert_close(
            got, expected, rtol=relative, atol=1e-300, msg=f"{spacing} {table}"
        )


@torch.inference_mode()
def test_time(case: Case, model: MAR) -> None:
    steps, tolerance = case.long("net.time.t"), case.tolerance("fwd")
    embedded = model.diffloss.net.time_embed(steps)
    # Angles reach 1,000, where neighbouring numbers of fp32 lie 6.1e-5 apart.
    engine.assert_recorded(case, "net.time.freq", time_features(steps), max(tolerance, 6.2e-5))
    engine.assert_recorded(case, "net.time.emb", embedded, tolerance)


def settings_of(name: str) -> tuple[float, float]:
    """Temperature and guidance of t1_cfg1, t095_cfg3 and the like."""
    temperature, cfg = re.fullmatch(r"(?:t(\d+)_)?cfg(\d+)", name).groups()
    tau = temperature or "1"
    return float(f"{tau[0]}.{tau[1:] or 0}"), float(cfg)


def named(case: Case, start: str, end: str) -> list[str]:
    """What stands between start and end in the names of tensors."""
    found = (re.fullmatch(rf"{start}\.([^.]+)\.{end}", name) for name in case.tensors)
    return [match[1] for match in found if match]


def step_tolerance(case: Case, key: str, index: int) -> float:
    """Means of early steps carry the network's errors enlarged."""
    text = case.info["tolerance"]["step"]
    last_small = int(re.search(r"indices <= (\d+)", text)[1])
    if index <= last_small or key in ("model_output", "log_variance"):
        return case.tolerance("step", 0)
    if key == "pred_xstart":
        return float(re.search(r"pred_xstart abs ([\d.]+)", text)[1])
    return case.tolerance("step", 1)


def step_of(case: Case, out: Tensor, tables: Schedule, i: int) -> dict[str, Tensor]:
    """What a step makes of the network's output, by its recorded name."""
    x, t = case.tensors["step.x_t"], tables.step_tables()[i]
    channels = x.shape[1]
    clean = t[0] * x - t[1] * out[:, :channels]
    share = (out[:, channels:] + 1) / 2
    mean, log_variance = t[2] * clean + t[3] * x, share * t[5] + (1 - share) * t[4]
    got = {"model_output": out, "pred_xstart": clean, "mean": mean, "log_variance": log_variance}
    deviation = (0.5 * log_variance).exp()
    for word in {name.rpartition("sample_")[2] for name in case.tensors if "sample_t" in name}:
        temperature = settings_of(f"{word}_cfg1")[0]
        noise = temperature * deviation * case.tensors["step.noise"]
        got[f"sample_{word}"] = mean + (noise if i else 0)
    return got


@torch.inference_mode()
def test_steps(case: Case, model: MAR) -> None:
    """Single denoising steps of the plain network."""
    facts = case.info["tensors"]["step.index"]["meaning"]
    tables = schedule(re.search(r"sched\.(\w+)", facts)[1].replace("_", ","))
    net, x = model.diffloss.net, case.tensors["step.x_t"]
    z, other = case.tensors["step.z_cond"], case.tensors["step.z_uncond"]
    for name in named(case, "step", "mean"):
        _, cfg = settings_of(name)
        for row, i in enumerate(case.tensors["step.index"].tolist()):
            steps = tables.steps[i].expand(len(x))
            out = net(x, steps, z)
            if cfg != 1.0:
                noise, variance = out.chunk(2, 1)
                free = net(x, steps, other).chunk(2, 1)[0]
                out = torch.cat([free + cfg * (noise - free), variance], 1)
            for key, value in step_of(case, out, tables, i).items():
                expected, allowed = case.tensors[f"step.{name}.{key}"][row], step_tolerance(case, key, i)  # fmt: skip
                engine.assert_close(f"{name} {i} {key}", value, expected, allowed)


@torch.inference_mode()
def test_chains(case: Case, model: MAR) -> None:
    """MAR's own token is the mean of the last step; its deviation is that of the network there."""
    tolerance, z, other = case.tolerance("chain"), case.tensors["step.z_cond"], case.tensors["step.z_uncond"]  # fmt: skip
    for name in named(case, "chain", "x_0"):
        temperature, cfg = settings_of(name)
        start, noise, path, expected = (
            case.tensors[f"chain.{name}.{key}"] for key in ("x_T", "noise", "traj", "x_0")
        )
        steps = noise.shape[1]
        respacing = mar.respacing_of(case, steps)
        module, ones = mar.scripted(model, respacing), torch.ones(len(z))
        guided = other if cfg != 1.0 else other[:0]
        hidden = noise.clone()
        hidden[:, 0] = torch.nan
        mean, deviation, sums = module.denoise(
            z, guided, cfg * ones, start, hidden, temperature * ones
        )
        engine.assert_close(name, mean, expected, tolerance)
        tables = schedule(respacing)
        logs = torch.stack([log_deviation(model, tables, path, z, i) for i in range(steps - 1)])
        torch.testing.assert_close(deviation, temperature * logs[0].exp(), rtol=1e-4, atol=0)
        first = log_deviation(model, tables, start, z, steps - 1)
        torch.testing.assert_close(sums, (logs[1:].double().sum(0) + first), rtol=1e-5, atol=1e-2)


def log_deviation(model: MAR, tables: Schedule, path: Tensor, z: Tensor, i: int) -> Tensor:
    """Of step i, which reads what step i + 1 gave; path [N,T,C], or the start [N,C]."""
    x = path if path.dim() == 2 else path[:, i + 1]
    variance = model.diffloss.net(x, tables.steps[i].expand(len(x)), z)[:, x.shape[1] :]
    share, t = (variance + 1) / 2, tables.step_tables()[i]
    return 0.5 * (share * t[5] + (1 - share) * t[4])


def test_runs(case: Case, model: MAR) -> None:
    """Whole images, in parallel steps and token by token."""
    for name, facts in case.info["runs"].items():
        run, classes = f"run_{name}", model.config.classes
        module = mar.scripted(model, facts["num_sampling_steps"])
        steps, expected = facts["num_iter"], case.tensors[f"{run}.tokens"]
        orders = case.long(f"{run}.orders").flip(1)
        check_schedule(case, run, facts, orders.shape[1])
        for row in range(facts["bsz"]):
            label = (
                int(case.tensors[f"{run}.labels"][row]) if case.has(f"{run}.labels") else classes
            )
            settings = Settings(label, facts["cfg"], facts["cfg_schedule"], facts["temperature"])
            noise = mar.with_last_step(case.tensors[f"{run}.noise"][row])
            numbers = RandomNumbers(case.tensors[f"{run}.x_T"][row], noise)

            def watch(step: int, image: Image, run: str = run, row: int = row) -> None:
                before = case.tensors[f"{run}.tokens_before_step"]
                if step < len(before):
                    engine.assert_close(f"{run} step {step}", image.tokens, before[step, row],
                                        case.tolerance("runs"))  # fmt: skip

            tokens = loop.sample_parallel(
                module, orders[row], settings, numbers, steps, classes, watch
            )
            engine.assert_close(run, tokens, expected[row], case.tolerance("runs"))
            if case.has(f"{run}.unpatchified"):
                grid = case.tensors[f"{run}.unpatchified"][row]
                got = tokens.t().view_as(grid)
                engine.assert_close(run, got, grid, case.tolerance("runs"))


def test_runs_of_the_engine(case: Case, model: MAR, tmp_path: Path) -> None:
    """Images of a run side by side, by the compiled loop."""
    for name, facts in case.info["runs"].items():
        run, count = f"run_{name}", facts["bsz"]
        labels = case.long(f"{run}.labels") if case.has(f"{run}.labels") else torch.full((count,), model.config.classes)  # fmt: skip
        noise = torch.stack([mar.with_last_step(noise) for noise in case.tensors[f"{run}.noise"]])
        generated = recorded.generate(
            recorded.bundle(tmp_path / "bundle", facts["num_sampling_steps"], model),
            {
                "class_ids": labels,
                "order": case.long(f"{run}.orders").flip(1),
                "start": case.tensors[f"{run}.x_T"],
                "noise": noise,
            },
            method="ar", steps=facts["num_iter"], last_noise="off", cfg_scale=facts["cfg"],
            schedule=facts["cfg_schedule"], temperature=facts["temperature"],
        )  # fmt: skip
        engine.assert_recorded(case, f"{run}.tokens", generated["tokens"], "runs")
        assert int(generated["counts.0"][0]) == facts["num_iter"], run


def check_schedule(case: Case, run: str, facts: dict[str, Any], positions: int) -> None:
    steps = facts["num_iter"]
    lengths = loop.mask_lengths(positions, steps)
    before = [positions, *lengths[:-1]]
    assert before == case.tensors[f"{run}.masked_before_step"].tolist()
    scales = [
        loop.guidance_scale(facts["cfg"], facts["cfg_schedule"], m, positions) for m in lengths
    ]
    assert scales == pytest.approx(case.tensors[f"{run}.cfg_iter"].tolist(), rel=ROUNDING)
