"""Choose which nodes to label next: uncertain ones that are not all alike, against as many at random.

python examples/active_learning.py [EPOCHS]
"""

import sys

import numpy as np

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
rounds, batch = 3, 20

data = bgcl.load("cora")
model = bgcl.BGCL(preset="cora", epochs=epochs, seed=0).fit(data)
draws, labels = model.sample(data, samples=10).numpy(), data.y.numpy()
mean = draws.mean(0)

# Two labels of each class to begin with; a label that is asked for is looked up in data.y.
first = np.concatenate([np.flatnonzero(labels == c)[:2] for c in np.unique(labels)])
random = np.random.default_rng(0)
for way in ("chosen", "at random"):
    known = first
    for _ in range(rounds):
        head = bgcl.MixtureClassifier(C=30.0).fit(draws[:, known], labels[known])
        doubt = bgcl.uncertainty(head.predict_samples(draws)).mutual_information
        unknown = np.setdiff1d(np.arange(len(labels)), known)
        asked = (
            bgcl.acquire(doubt, mean, batch, among=unknown)
            if way == "chosen"
            else random.choice(unknown, batch, replace=False)
        )
        known = np.concatenate([known, asked])
    head = bgcl.MixtureClassifier(C=30.0).fit(draws[:, known], labels[known])
    unknown = np.setdiff1d(np.arange(len(labels)), known)
    accuracy = (head.predict(draws[:, unknown]) == labels[unknown]).mean()
    print(f"{len(known)} labels, {way}: {accuracy:.1%} of the other nodes right")
