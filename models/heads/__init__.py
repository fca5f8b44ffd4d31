"""Small networks that guess several tokens ahead from a target's hidden state: Medusa, MLP speculators."""
