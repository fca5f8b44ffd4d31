# %% [markdown]
# Generates one caption with several methods and plots their tokens per target pass.
# python tools/python/examples/methods.py [BUNDLE [OUT.png]]

# %%
import sys

import lamplighter
import numpy as np
from PIL import Image, ImageDraw

bundle = sys.argv[1] if len(sys.argv) > 1 else "models/demo/bundle"
out = sys.argv[2] if len(sys.argv) > 2 else "methods.png"
engine = lamplighter.TextToImage(bundle)

# %% Generate
methods = ["ar", "sjd", "eagle", "lantern++"]
caption = "a white lighthouse on the coast at dusk"
results = [engine.generate(caption, method=method, seed=7)[0] for method in methods]
for method, result in zip(methods, results):
    print(f"{method:10} {result.statistics.step_compression:.2f} tokens per target pass")

# %% The images, each above a bar of its step compression
width, height = results[0].image.size
figure = Image.new("RGB", (width * len(methods), height + 130), "white")
canvas = ImageDraw.Draw(figure)
most = max(result.statistics.step_compression for result in results)
for i, (method, result) in enumerate(zip(methods, results)):
    s = result.statistics.step_compression
    figure.paste(result.image, (i * width, 0))
    canvas.text((i * width + 10, height + 8), f"{method}: {s:.2f} tokens per pass", "black")
    canvas.rectangle(
        (i * width + 10, height + 26, i * width + 10 + (width - 20) * s / most, height + 42), "teal"
    )

# %% Tokens of every cycle, in order: one column per cycle, at most 50 pixels high
longest = max(max(result.statistics.acceptance_lengths) for result in results)
for i, result in enumerate(results):
    lengths = np.array(result.statistics.acceptance_lengths)
    canvas.text(
        (i * width + 10, height + 50),
        f"tokens of {len(lengths)} cycles, at most {lengths.max()}",
        "black",
    )
    for x, length in enumerate(np.array_split(lengths, min(width - 20, len(lengths)))):
        left = i * width + 10 + x
        canvas.line(
            (left, height + 122, left, height + 122 - 50 * length.mean() / longest), "black"
        )
figure.save(out)
