# %% [markdown]
# Pictures of one caption by several methods, and what their passes of the target brought.
# python tools/python/examples/methods.py [BUNDLE [OUT.png]]

# %%
import sys

import lamplighter
import numpy as np
from PIL import Image, ImageDraw

bundle = sys.argv[1] if len(sys.argv) > 1 else "models/demo/bundle"
out = sys.argv[2] if len(sys.argv) > 2 else "methods.png"
engine = lamplighter.TextToImage(bundle)

# %% Draw
methods = ["ar", "sjd", "eagle", "lantern++"]
caption = "a white lighthouse on the coast at dusk"
results = [engine.generate(caption, method=method, seed=7)[0] for method in methods]
for method, result in zip(methods, results):
    print(f"{method:10} {result.statistics.step_compression:.2f} tokens per target pass")

# %% The pictures, and below each its step compression as a bar
width, height = results[0].image.size
figure = Image.new("RGB", (width * len(methods), height + 130), "white")
draw = ImageDraw.Draw(figure)
most = max(result.statistics.step_compression for result in results)
for i, (method, result) in enumerate(zip(methods, results)):
    s = result.statistics.step_compression
    figure.paste(result.image, (i * width, 0))
    draw.text((i * width + 10, height + 8), f"{method}: {s:.2f} tokens per pass", "black")
    draw.rectangle(
        (i * width + 10, height + 26, i * width + 10 + (width - 20) * s / most, height + 42), "teal"
    )

# %% Tokens of every cycle, in order, a column a cycle of up to 50 pixels
longest = max(max(result.statistics.acceptance_lengths) for result in results)
for i, result in enumerate(results):
    lengths = np.array(result.statistics.acceptance_lengths)
    draw.text(
        (i * width + 10, height + 50),
        f"tokens of {len(lengths)} cycles, up to {lengths.max()}",
        "black",
    )
    for x, length in enumerate(np.array_split(lengths, min(width - 20, len(lengths)))):
        left = i * width + 10 + x
        draw.line((left, height + 122, left, height + 122 - 50 * length.mean() / longest), "black")
figure.save(out)
