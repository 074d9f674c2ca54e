"""Colors and line styles that the plots and the notebook card share."""

# Colors that color-blind people can tell apart (Okabe and Ito, 2008), and dashes for black-and-white print.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
VIEW_STYLE = {"o": (COLORS[0], "-"), "t": (COLORS[1], "--")}
