"""Parts that the image tokenizers of the VQGAN lineage share: blocks, frame, TorchScript decoder."""
