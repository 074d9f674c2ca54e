"""Active learning: choose the nodes to label next.

In each round, `acquire` chooses 20 nodes that are uncertain and different from each other, and their labels join the
training set. For comparison, the same number of nodes is chosen at random.
"""

import sys

import numpy as np

import bgcl
from bgcl.measures import acquire

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else None
rounds, batch = 3, 20

# Train once, without labels. New labels change the classifier only.
data = bgcl.load("cora")
model = bgcl.BGCL(epochs=epochs, seed=0).fit(data)
draws, labels = model.sample(data, samples=10).numpy(), data.y.numpy()
mean = draws.mean(0)  # (N, d)

# Start with two labels of each class. In this example, asking for a label means to look it up in data.y.
start = np.concatenate([np.flatnonzero(labels == c)[:2] for c in np.unique(labels)])
random = np.random.default_rng(0)
for strategy in ("acquire", "random"):
    known = start
    for _ in range(rounds):
        unknown = np.setdiff1d(np.arange(len(labels)), known)
        if strategy == "acquire":
            head = bgcl.MixtureClassifier(C=30.0).fit(draws[:, known], labels[known])
            uncertainty = bgcl.uncertainty(head.predict_samples(draws)).mutual_information
            chosen = acquire(uncertainty, mean, batch, among=unknown)
        else:
            chosen = random.choice(unknown, batch, replace=False)
        known = np.concatenate([known, chosen])
    head = bgcl.MixtureClassifier(C=30.0).fit(draws[:, known], labels[known])
    unknown = np.setdiff1d(np.arange(len(labels)), known)
    accuracy = (head.predict(draws[:, unknown]) == labels[unknown]).mean()
    print(f"{strategy}: with {len(known)} labels, {accuracy:.1%} of the other nodes are correct")
