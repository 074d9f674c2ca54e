"""How unlike the known nodes a node is: scores of nodes, their tails among known nodes, and a rule that joins them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
