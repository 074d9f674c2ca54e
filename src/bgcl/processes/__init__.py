"""Several processes that train one model: sums of gradients, the same error in all, and starting them.

- `team`: what processes tell each other, over `torch.distributed`;
- `joining`: a process finds the others that torchrun or SLURM has started with it;
- `launch`: start several processes on this machine, and start all again if one dies.

Nothing of this depends on the model. A process alone is a team of one, for which nothing is sent.
"""
