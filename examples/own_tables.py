"""Your own tables: from two CSV files to predictions by customer id.

Customers of a shop are nodes, and an edge joins two customers if one referred the other. Half of the customers have a
label. The columns of the table become attributes, and the predictions keep the ids of the table.
"""

import csv
import random
import sys
import tempfile
from pathlib import Path

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else None

# Write two tables, nodes.csv and edges.csv.
chance, folder = random.Random(0), Path(tempfile.mkdtemp())
kinds = [chance.choice(["private", "business"]) for _ in range(120)]
with (folder / "nodes.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["customer", "orders", "city", "label"])
    for i, kind in enumerate(kinds):
        orders = chance.gauss(40 if kind == "business" else 12, 10)
        label = kind if chance.random() < 0.5 else ""
        table.writerow([f"c-{i:03}", f"{max(orders, 0):.0f}", chance.choice(["Oslo", "Rome", "Lima"]), label])
with (folder / "edges.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["from", "to"])
    for _ in range(360):
        a, b = chance.sample(range(120), 2)
        if kinds[a] == kinds[b] or chance.random() < 0.15:
            table.writerow([f"c-{a:03}", f"c-{b:03}"])

# Load the tables and check what was read.
data = bgcl.load(folder, id="customer")
summary = bgcl.inspect(data)
print(f"{summary.nodes} nodes, {summary.edges} edges, labels {summary.classes}")
print("attributes:", ", ".join(data.attribute_names))

# Train, predict, and print the five most uncertain customers.
model = bgcl.BGCL(epochs=epochs).fit(data)
columns = bgcl.predict(model, data, samples=40).columns()
for node in bgcl.rank(columns["least_confidence"])[:5]:
    print(columns["id"][node], columns["predicted"][node], f"{columns['probability'][node]:.2f}")
