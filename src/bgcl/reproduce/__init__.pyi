from .noise_experiment import NoiseExperiment

__all__ = ["NoiseExperiment"]
