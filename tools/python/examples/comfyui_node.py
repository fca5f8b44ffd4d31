"""A node for ComfyUI: copy this file into its custom_nodes folder."""

import numpy as np
import torch
from lamplighter import TextToImage


class LamplighterNode:
    INPUT_TYPES = classmethod(
        lambda _: {
            "required": {
                "bundle": ("STRING", {"default": "models/demo/bundle"}),
                "prompt": ("STRING", {"multiline": True}),
                "method": ("STRING", {"default": "sjd"}),
                "seed": ("INT", {"default": 42, "min": 0, "max": 2**64 - 1}),
            }
        }
    )
    RETURN_TYPES, FUNCTION, CATEGORY = ("IMAGE",), "draw", "lamplighter"

    def draw(self, bundle, prompt, method, seed):
        """A tensor (1, height, width, 3) of values in [0, 1], ComfyUI's form of pictures."""
        result = TextToImage(bundle).generate(prompt, method=method, seed=seed)[0]
        return (torch.from_numpy(np.asarray(result.image) / np.float32(255))[None],)


NODE_CLASS_MAPPINGS = {"Lamplighter": LamplighterNode}
