"""A node for ComfyUI: copy this file into its custom_nodes folder."""

import numpy as np
import torch
from lamplighter import TextToImage, methods

try:  # ComfyUI's own
    from comfy.utils import ProgressBar
except ImportError:
    ProgressBar = None


class LamplighterNode:
    INPUT_TYPES = classmethod(
        lambda _: {
            "required": {
                "bundle": ("STRING", {"default": "models/demo/bundle"}),
                "prompt": ("STRING", {"multiline": True}),
                "method": ([*methods(), "auto"], {"default": "sjd"}),
                "seed": ("INT", {"default": 42, "min": 0, "max": 2**64 - 1}),
            },
            "optional": {
                "guidance": ("FLOAT", {"default": 0.0, "min": 0.0, "max": 30.0, "step": 0.1}),
            },
        }
    )
    RETURN_TYPES, FUNCTION, CATEGORY = ("IMAGE",), "generate", "lamplighter"
    engines: dict[str, TextToImage] = {}  # one is kept, so that a second image loads nothing

    def generate(self, bundle, prompt, method, seed, guidance=0.0):
        """Returns an image in ComfyUI's form: a tensor (1, height, width, 3) of values in [0, 1].

        guidance: 0 = the bundle's.
        """
        if bundle not in self.engines:
            self.engines.clear()
            self.engines[bundle] = TextToImage(bundle)
        engine = self.engines[bundle]
        result = engine.generate(
            prompt, method=method, seed=seed, cfg_scale=guidance or None, **self.shown(engine)
        )[0]
        return (torch.from_numpy(np.asarray(result.image) / np.float32(255))[None],)

    def shown(self, engine):
        """Progress, and a preview of every fourth row of tokens."""
        if ProgressBar is None:
            return {}
        bar, now = ProgressBar(1), [0, 1]

        def progress(done, total):
            now[:] = done, total
            bar.update_absolute(done, total)

        def on_row(_, row, codes):
            if row % 4 == 3:
                bar.update_absolute(*now, ("JPEG", engine.decode(codes), 512))

        return {"progress": progress, "on_row": on_row}


NODE_CLASS_MAPPINGS = {"Lamplighter": LamplighterNode}
