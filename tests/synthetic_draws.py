"""Random draws with labels for tests of the heads, and a numerical gradient."""

import numpy as np


def random_draws(samples: int = 3, nodes: int = 24, width: int = 2, classes: int = 3, seed: int = 0):
    """Draws of overlapping classes, `(samples, nodes, width)`, and the labels."""
    random = np.random.default_rng(seed)
    y = np.arange(nodes) % classes
    centers = random.normal(size=(classes, width))
    nodes_at = centers[y] + 0.8 * random.normal(size=(nodes, width))
    return nodes_at + 0.5 * random.normal(size=(samples, nodes, width)), y


def numerical_gradient(f, at, step: float = 1e-5):
    """The gradient of `f` at a point by central differences."""
    shifts = np.eye(len(at)) * step
    return np.array([(f(at + shift) - f(at - shift)) / (2 * step) for shift in shifts])
