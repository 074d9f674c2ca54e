"""The tables and figures of the paper, with the paper's numbers next to ours: `bgcl reproduce`.

`experiments` lists the cells of each table, and `field` those of the comparison with other methods. `compute` computes
a cell, `fitting` trains its method, `cost` measures that, and `cache` stores it. `results` reads and writes result
files, `pages` and `field_page` make tables from them, and `figures` makes figures.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
