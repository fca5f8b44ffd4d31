"""Networks that guess several tokens ahead of a target: Medusa's heads, MLP speculators, FLASH."""
