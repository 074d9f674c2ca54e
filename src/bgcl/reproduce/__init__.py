"""The paper's tables and figures, its numbers beside ours: `bgcl reproduce`.

`experiments` says which cells a table is made of, `compute` computes one, `cache` keeps it; `results` are the files
that `pages` makes tables and figures of.
"""
