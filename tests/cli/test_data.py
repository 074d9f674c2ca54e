"""`bgcl data`: list and verify data sets."""

import json


def test_list_has_the_data_sets_and_verify_compares_checksums(run):
    assert {row["name"] for row in json.loads(run("data", "list", "--json")[1])} >= {"cora", "wikics", "coauthor-cs"}
    assert "matches the published content" in run("data", "verify", "cora")[1]
