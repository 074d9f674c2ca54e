"""Money mules: which accounts should a person check?

Bank accounts are nodes, and payments between them are edges. Most accounts are honest, and a ring of mules passes money
around. A few honest accounts look similar to the ring, such as the account of a club's treasurer. The model is certain
about the other honest accounts, but not about mules and accounts that look like them. The data are made up.
"""

import sys

import numpy as np

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else None
random = np.random.default_rng(0)

# Make 280 accounts. Similar accounts pay each other more often.
honest, mules, between = 200, 60, 20
kind = np.repeat(["honest", "mule", "honest"], [honest, mules, between])
similarity = np.repeat([0.0, 1.0, 0.5], [honest, mules, between])  # how much an account looks like a mule
count = len(kind)
chance = 8 / count * np.exp(-4 * np.abs(similarity[:, None] - similarity))
source, target = np.nonzero(np.triu(random.random((count, count)) < chance, 1))
accounts = {
    "account": [f"A{i:04}" for i in range(count)],
    "days_open": random.normal(900 - 700 * similarity, 150),
    "payments_a_week": random.normal(3 + 9 * similarity, 2.5),
    "kept_overnight": random.random(count) > 0.2 + 0.6 * similarity,
    "label": np.where(random.random(count) < 0.4, kind, None),  # 40 % of the accounts are labeled
}
names = np.array(accounts["account"])
data = bgcl.graph_from({"source": names[source], "target": names[target]}, accounts, id="account")

# Train without labels, then predict every account.
model = bgcl.BGCL(epochs=epochs).fit(data)
found = bgcl.predict(model, data, samples=60)
uncertainty = found.uncertainty.least_confidence
predicted = found.columns()["predicted"]
print(f"{(predicted == kind).mean():.1%} of {count} accounts are predicted correctly")

# Compare the uncertainty of the three groups, and list the accounts to check first.
groups = {
    "honest": slice(0, honest),
    "mules": slice(honest, honest + mules),
    "honest, but similar to mules": slice(honest + mules, None),
}
for name, group in groups.items():
    print(f"mean uncertainty, {name}: {uncertainty[group].mean():.3f}")
print("check first:", ", ".join(np.take(data.ids, bgcl.rank(uncertainty)[:8])))
