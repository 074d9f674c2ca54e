"""First run: train on Cora, predict, and find the uncertain nodes.

A model is trained on Cora without labels. A classifier then learns from the labels of 10 % of the nodes and predicts
the others. Its accuracy is low where it is uncertain, and high where it is certain.
"""

import sys

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else None

# Train without labels.
data = bgcl.load("cora")
model = bgcl.BGCL(epochs=epochs, seed=0).fit(data)

# Draw embeddings. Ten draws train a classifier, the others predict.
split = bgcl.splits(data, "grace", count=1)[0]  # 10 % training nodes, 90 % test nodes
draws = model.sample(data, samples=24)  # (24, N, d)
head = bgcl.MixtureClassifier(parts=model.parts_).fit(draws[:8, split.train], data.y[split.train])
found = bgcl.uncertainty(head.predict_samples(draws[8:, split.test]))

# Compare the accuracy of uncertain and certain nodes.
correct = head.classes_[found.probability.argmax(1)] == data.y[split.test].numpy()
order = bgcl.rank(found.least_confidence)  # the most uncertain first
tenth, half = len(order) // 10, len(order) // 2
print(f"accuracy on all test nodes: {correct.mean():.1%}")
print(f"on the 10 % most uncertain: {correct[order[:tenth]].mean():.1%}")
print(f"on the 50 % most certain: {correct[order[-half:]].mean():.1%}")
