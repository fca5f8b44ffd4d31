"use strict";
// The figures of page.html. Untrusted texts are used only as data, never as markup.
const { report, scores, growth } = JSON.parse(document.getElementById("data").textContent);
const STAGES = ["draft", "score", "verify", "commit"];
const rows = report.methods ?? [];
const names = [...new Set(rows.map((row) => row.method))];
const sizes = [...new Set(rows.map((row) => row.batch_size ?? 1))];
const first = rows.filter((row) => (row.batch_size ?? 1) === sizes[0]);  // most figures show one batch size
const known = (value) => typeof value === "number" && Number.isFinite(value);
const baseline = first.find((row) => row.method === "ar") ?? first[0];

const config = {
  background: "transparent", font: "system-ui, sans-serif", view: { stroke: null }, padding: 4,
  axis: { labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", titlePadding: 8, labelPadding: 6, ticks: false,
          domain: false, labelLimit: 240 },
  legend: { orient: "bottom", title: null, labelFontSize: 12, labelLimit: 0, symbolType: "circle", rowPadding: 4,
            columnPadding: 20 },
};
const narrow = () => document.documentElement.clientWidth < 720;
const longest = Math.max(...names.map((name) => name.length), 1);
const columns = () => Math.max(1, Math.floor((Math.min(document.documentElement.clientWidth, 1080) - 100) / (7 * longest + 40)));
// The colour of a method, equal in all figures. The legend lists the methods of `values`.
const colour = (values) => ({
  field: "method", type: "nominal", sort: null,
  scale: { domain: names, scheme: names.length > 10 ? "tableau20" : "tableau10" },
  legend: values ? { columns: columns(), values: names.filter((name) => values.some(({ method }) => method === name)) } : null,
});
const quantity = (field, title, more = {}) => ({
  field, type: "quantitative", title, ...more, axis: { tickCount: narrow() ? 5 : 9, ...more.axis }, scale: { ...(more.scale?.type === "log" ? {} : { zero: false }), nice: true, ...more.scale },
});
// Puts the title of a vertical axis above it, so that it reads horizontally.
const up = (field, title, more = {}) => quantity(field, title, {
  ...more, axis: { titleAngle: 0, titleAlign: "left", titleAnchor: "end", titleX: -36, titleY: -14, ...more.axis },
});
const methodAxis = { field: "method", type: "nominal", sort: names, title: null, axis: { labelLimit: narrow() ? 200 : 300 } };
const tooltip = (...fields) => fields.map(([field, title, format = ".3~r"]) => ({ field, title, ...(format ? { format } : {}) }));
const words = (field, title) => [field, title, ""];
// Layers without data are omitted.
const having = (values, field) => values.filter((value) => known(value[field]));
const layers = (...all) => all.filter((layer) => !layer.data || layer.data.values.length);
const dashed = { type: "rule", strokeDash: [5, 4], strokeWidth: 1.2 };

// Sections by id. A function returns the specification of its figure, or null without data.
const figures = {
  latency() {
    const values = first.filter((row) => known(row.mean_latency_ms?.mean) && known(row.step_compression?.mean)).map((row) => ({
      method: row.method, ms: row.mean_latency_ms.mean, low: row.mean_latency_ms.low, high: row.mean_latency_ms.high,
      s: row.step_compression.mean, left: row.step_compression.low, right: row.step_compression.high,
    }));
    if (values.length < 2) return null;
    const most = 1.05 * Math.max(...values.map(({ s, right }) => right ?? s));
    const ideal = baseline.method !== "ar" ? [] : Array.from({ length: 60 }, (_, i) => {
      const s = 1 + (most - 1) * i / 59;
      return { s, ms: baseline.mean_latency_ms.mean / s };
    });
    const x = quantity("s", "step compression S (tokens per target pass)");
    const y = up("ms", "milliseconds" + (sizes[0] > 1 ? `, ${sizes[0]} images together` : " per image"));
    return {
      height: 340, data: { values },
      layer: layers(
        { name: "reference", data: { values: ideal }, mark: { type: "line", strokeDash: [5, 4], strokeWidth: 1.2 }, encoding: { x, y } },
        { data: { values: having(values, "low") }, mark: { type: "rule", strokeWidth: 1.5 },
          encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color: colour(values) } },
        { data: { values: having(values, "left") }, mark: { type: "rule", strokeWidth: 1.5 },
          encoding: { x: { ...x, field: "left" }, x2: { field: "right" }, y, color: colour(values) } },
        { mark: { type: "point", filled: true, size: 70, opacity: 1 },
          encoding: { x, y, color: colour(values), tooltip: tooltip(words("method", "method"), ["s", "S"], ["ms", "ms"]) } },
      ),
    };
  },

  ratio() {
    const values = first.map((row) => ({ row, ratio: row.speedup ?? row.ratio })).filter(({ row, ratio }) =>
      ratio?.count > 0 && row.method !== "ar" && row.speedup).map(({ row, ratio }) => ({
      method: row.method, ratio: ratio.mean, low: ratio.low, high: ratio.high, s: row.step_compression?.mean,
    }));
    if (!values.length) return null;
    const x = quantity("ratio", "times as fast as ar", { scale: { zero: true } });
    return {
      height: 34 * values.length, data: { values },
      layer: layers(
        { name: "reference", data: { values: [{ at: 1 }] }, mark: dashed, encoding: { x: { ...x, field: "at" } } },
        { data: { values: having(values, "low") }, mark: { type: "rule", strokeWidth: 3, opacity: 0.55 },
          encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y: methodAxis, color: colour() } },
        { mark: { type: "tick", thickness: 2, size: 16 }, encoding: { x: { ...x, field: "s" }, y: methodAxis, color: colour() } },
        { mark: { type: "point", filled: true, size: 80, opacity: 1 },
          encoding: { x, y: methodAxis, color: colour(),
                      tooltip: tooltip(words("method", "method"), ["ratio", "ratio"], ["low", "from"], ["high", "to"], ["s", "S"]) } },
      ),
    };
  },

  depth() {
    const values = first.flatMap((row) => (row.reached_depth ?? []).map((share, i) => ({ method: row.method, depth: i + 1, share })));
    if (!values.length) return null;
    return {
      height: 280, data: { values }, mark: { type: "line", point: { size: 45 }, strokeWidth: 2 },
      encoding: {
        x: { field: "depth", type: "quantitative", title: "depth of the drafted token", scale: { nice: false, padding: 12 },
             axis: { tickMinStep: 1, format: "d" } },
        y: up("share", "share of cycles", { scale: { domain: [0, 1] }, axis: { format: "%" } }),
        color: colour(values), tooltip: tooltip(words("method", "method"), ["depth", "depth"], ["share", "share", ".1%"]),
      },
    };
  },

  rank() {
    const values = first.flatMap((row) => {
      const sums = [];
      for (const ranks of row.reached_rank ?? []) ranks.forEach((share, rank) => { sums[rank] = (sums[rank] ?? 0) + share; });
      return sums.map((tokens, rank) => ({ method: row.method, rank: rank + 1, tokens }));
    });
    if (!values.some(({ rank }) => rank > 1)) return null;  // chains have no siblings
    return {
      height: 260, data: { values }, mark: { type: "bar", cornerRadiusEnd: 2 },
      encoding: {
        x: { field: "rank", type: "ordinal", title: "rank of the accepted child", axis: { labelAngle: 0 } },
        xOffset: { field: "method", sort: names }, y: up("tokens", "accepted tokens per cycle", { scale: { zero: true } }),
        color: colour(values), tooltip: tooltip(words("method", "method"), ["rank", "rank"], ["tokens", "tokens per cycle"]),
      },
    };
  },

  stages() {
    const timed = first.filter((row) => row.stage_ms?.score > 0);
    if (!timed.length) return null;
    const values = timed.flatMap((row) => STAGES.map((stage, order) => ({ method: row.method, stage, order, ms: row.stage_ms[stage] })));
    const step = timed.includes(baseline) ? [{ ms: STAGES.reduce((sum, stage) => sum + baseline.stage_ms[stage], 0) }] : [];
    const x = quantity("ms", "milliseconds per cycle", { scale: { zero: true } });
    return {
      height: 34 * timed.length, data: { values },
      layer: layers(
        { mark: { type: "bar", height: { band: 0.7 } },
          encoding: { x: { ...x, stack: true }, y: methodAxis, order: { field: "order" },
                      color: { field: "stage", type: "nominal", sort: STAGES, scale: { domain: STAGES, range: ["#4c78a8", "#72b7b2", "#b279a2", "#9d9da0"] } },
                      tooltip: tooltip(words("method", "method"), words("stage", "stage"), ["ms", "ms"]) } },
        { name: "reference", data: { values: step }, mark: dashed, encoding: { x: { ...x, stack: null } } },
      ),
    };
  },

  roofline() {
    const points = rows.map((row) => ({
      method: row.method, batch: row.batch_size ?? 1, rows: row.pass?.rows ?? row.rows, ms: row.pass?.score_ms ?? row.stage_ms?.score,
      bytes: row.pass?.weight_bytes ?? report.target_bytes,
    })).filter(({ rows: count, ms }) => known(count) && known(ms) && count > 0 && ms > 0);
    if (new Set(points.map((point) => point.rows)).size < 2) return null;
    const least = points.reduce((a, b) => (b.rows < a.rows ? b : a)), most = Math.max(...points.map((point) => point.rows));
    const ends = [least.rows, most];
    const line = (kind, ms) => ends.map((count) => ({ kind, rows: count, ms: ms(count) }));
    const lines = [...line("reading weights: positions are free", () => least.ms),
                   ...line("arithmetic: every position costs time", (count) => least.ms * count / least.rows)];
    const rate = report.bandwidth_bytes_per_second ?? report.environment?.bandwidth_bytes_per_second;
    if (known(rate) && known(least.bytes)) lines.push(...line("least time to read the weights", () => 1000 * least.bytes / rate));
    const x = quantity("rows", "positions in a target pass", { scale: { type: "log", base: 2, nice: false, padding: 20 }, axis: { format: "d" } });
    const y = up("ms", "milliseconds per pass", { scale: { type: "log", nice: false, padding: 10 }, axis: { format: "~g", tickCount: 5 } });
    return {
      height: 320,
      layer: layers(
        { name: "reference", data: { values: lines }, mark: { type: "line", strokeWidth: 1.2 },
          encoding: { x, y, strokeDash: { field: "kind", type: "nominal", sort: null, legend: { symbolType: "stroke", symbolSize: 400, symbolStrokeColor: "#888", columns: 1 } } } },
        { data: { values: points }, mark: { type: "point", filled: true, size: 70, opacity: 1 },
          encoding: { x, y, color: colour(points), tooltip: tooltip(words("method", "method"), ["batch", "together"], ["rows", "positions"], ["ms", "ms"]) } },
      ),
    };
  },

  throughput() {
    const values = rows.filter((row) => known(row.mean_latency_ms?.mean) && known(row.images_per_second?.p50)).map((row) => ({
      method: row.method, batch: row.batch_size, ms: row.mean_latency_ms.mean, rate: row.images_per_second.p50,
    }));
    if (sizes.length < 2 || !values.length) return null;
    const x = quantity("ms", "milliseconds until an image is finished"), y = up("rate", "images per second", { scale: { zero: true } });
    return {
      height: 320, data: { values },
      layer: layers(
        { mark: { type: "line", point: { size: 50 }, strokeWidth: 2 },
          encoding: { x, y, color: colour(values), order: { field: "batch" },
                      tooltip: tooltip(words("method", "method"), ["batch", "together"], ["ms", "ms"], ["rate", "images/s"]) } },
        { name: "reference", mark: { type: "text", dy: -12, fontSize: 11 }, encoding: { x, y, text: { field: "batch" } } },
      ),
    };
  },

  quality() {
    const metrics = [...new Set(Object.values(scores ?? {}).flatMap((values) => Object.keys(values)))];
    const better = { fid: ", lower is better", clip: ", higher is better" };
    const figure = (metric) => {
      const values = first.filter((row) => known(scores[row.method]?.[metric]) && (row.speedup?.count > 0 || row.method === "ar"))
        .map((row) => ({ method: row.method, score: scores[row.method][metric], ratio: row.speedup?.mean ?? 1,
                         distribution: row.lossless === false ? "lossy" : "lossless" }));
      if (!values.length) return null;
      return {
        height: 280, data: { values }, mark: { type: "point", filled: true, size: 80, opacity: 1 },
        encoding: {
          x: quantity("ratio", "times as fast as ar", { scale: { padding: 12 } }), y: up("score", metric + (better[metric.toLowerCase()] ?? "")),
          color: colour(values), shape: { field: "distribution", type: "nominal", scale: { domain: ["lossless", "lossy"], range: ["circle", "triangle-up"] },
                                    legend: { symbolFillColor: "#888", symbolStrokeColor: "#888" } },
          tooltip: tooltip(words("method", "method"), words("distribution", "distribution"), ["ratio", "ratio"], ["score", metric]),
        },
      };
    };
    return metrics.map(figure).filter(Boolean);
  },

  growth() {
    const log = (values) => ({ scale: { type: "log", nice: false, padding: 14 }, axis: { values: [...new Set(values)], format: "d" } });
    const figure = (points, x, field, title) => {
      const values = (points ?? []).map((point) => ({ ...point, tokens: point.grid ** 2 }));
      if (values.length < 2) return null;
      return {
        height: 260, data: { values }, mark: { type: "line", point: { size: 45 }, strokeWidth: 2 },
        encoding: {
          x: x(values), y: up(field, title, { scale: { type: "log", nice: false, padding: 10 }, axis: { format: "~g", tickCount: 5 } }),
          color: { field: "method", type: "nominal", sort: null, legend: {} },
          tooltip: tooltip(words("method", "method"), ["S", "S"], ["ms", "ms per image"], ["ms a pass", "ms per pass"], ["MB", "MB"]),
        },
      };
    };
    const tokens = (values) => quantity("tokens", "tokens per image", log(values.map((point) => point.tokens)));
    const together = (values) => quantity("images", "images generated together", log(values.map((point) => point.images)));
    const tree = () => ({ field: "tree", type: "ordinal", sort: null, title: "draft tree", axis: { labelAngle: narrow() ? -40 : 0 } });
    const { image, batch, tree: trees } = growth?.curves ?? {};
    return [figure(image, tokens, "ms", "milliseconds per image"), figure(image, tokens, "ms a pass", "milliseconds per target pass"),
            figure(image, tokens, "MB", "peak megabytes"), figure(batch, together, "ms", "milliseconds per image"),
            figure(batch, together, "MB", "peak megabytes"), figure(trees, tree, "ms a pass", "milliseconds per target pass"),
            figure(trees, tree, "ms", "milliseconds per image")].filter(Boolean);
  },
};

async function run() {
  for (const [id, figure] of Object.entries(figures)) {
    const section = document.getElementById(id);
    const specifications = [figure()].flat().filter(Boolean);
    if (!specifications.length) continue;
    section.hidden = false;
    for (const box of section.querySelectorAll(".charts")) {
      box.replaceChildren(...specifications.map(() => Object.assign(document.createElement("div"), { className: "chart" })));
    }
    const boxes = section.querySelectorAll(".chart");
    for (const [i, specification] of specifications.entries()) {
      await vegaEmbed(boxes[i], { width: "container", autosize: { type: "fit-x", contains: "padding" }, ...specification, config },
                      { renderer: "svg", actions: false });
    }
  }
  document.documentElement.dataset.drawn = "";
}
run();
