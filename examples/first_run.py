"""Train on Cora without labels, predict with few labels, and see that unsure predictions are the wrong ones.

python examples/first_run.py [EPOCHS]
"""

import sys

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300

data = bgcl.load("cora")
model = bgcl.BGCL(preset="cora", epochs=epochs, seed=0).fit(data)

split = bgcl.splits(data, "grace", count=1)[0]  # a tenth of the labels to learn from
draws = model.sample(data, samples=60)  # (60, N, d)
head = bgcl.MixtureClassifier().fit(draws[:10, split.train], data.y[split.train])
found = bgcl.uncertainty(head.predict_samples(draws[10:, split.test]))

right = head.classes_[found.probability.argmax(1)] == data.y[split.test].numpy()
order = bgcl.rank(found.least_confidence)  # the least sure first
tenth = len(order) // 10
print(f"right: {right.mean():.1%} of the nodes whose label was not seen")
print(f"among the tenth that is least sure: {right[order[:tenth]].mean():.1%}")
print(f"among the half that is surest: {right[order[-len(order) // 2 :]].mean():.1%}")
