"""The report: one page that works offline and shows what a model knows of its nodes, and what it does not.

`node_map` places the nodes, `contents` gathers what the page shows, `page` writes it; `assets` holds the page itself.
"""
