"""Accounts that send each other money: which are mules, and where must a person look?

A made-up graph, not one of citations: a ring passes money round, and most accounts are honest. A few honest ones look
like the ring (a club's treasurer, say), and those the model should be unsure of.

python examples/uncertainty_on_a_non_citation_graph.py [EPOCHS]
"""

import sys

import numpy as np

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
random = np.random.default_rng(0)

honest, mules, between = 200, 60, 20
kind = np.repeat(["honest", "mule", "honest"], [honest, mules, between])
place = np.repeat([0.0, 1.0, 0.5], [honest, mules, between])  # how much an account looks like the ring
count = len(kind)
chance = 8 / count * np.exp(-4 * np.abs(place[:, None] - place))
source, target = np.nonzero(np.triu(random.random((count, count)) < chance, 1))
accounts = {
    "account": [f"A{i:04}" for i in range(count)],
    "days_open": random.normal(900 - 700 * place, 150),
    "payments_a_week": random.normal(3 + 9 * place, 2.5),
    "kept_overnight": random.random(count) > 0.2 + 0.6 * place,
    "label": np.where(random.random(count) < 0.4, kind, None),
}
data = bgcl.graph_from({"source": np.take(accounts["account"], source), "target": np.take(accounts["account"], target)},
                       accounts, id="account")  # fmt: skip

model = bgcl.BGCL(preset="auto", epochs=epochs).fit(data)
found = bgcl.predict_nodes(model, data, samples=60)
doubt = found.uncertainty.least_confidence
names = found.columns()["predicted"]
print(f"right: {(names == kind).mean():.1%} of {count} accounts")
for name, group in (("honest", slice(0, honest)), ("mules", slice(honest, honest + mules)),
                    ("honest, but alike", slice(honest + mules, None))):  # fmt: skip
    print(f"mean doubt, {name}: {doubt[group].mean():.3f}")
print("look first at", ", ".join(np.take(data.ids, bgcl.rank(doubt)[:8])))
