"""The number that a spreadsheet or an editor shows for a row of a CSV file, for errors."""

import csv
import io
from typing import BinaryIO


def number_of_row(file: BinaryIO, delimiter: str, before: int, row: int) -> int:
    """The number of a row in the file, counted from 1. Empty rows count, which Arrow leaves out.

    A quoted value of several lines is in one row, as in a spreadsheet.

    Args:
        file: the file, open at its beginning.
        delimiter: the delimiter.
        before: number of rows before the first row of values, such as the header.
        row: number of the row among the rows of values that are not empty, counted from 0.
    """
    reader = csv.reader(io.TextIOWrapper(file, "latin-1", newline=""), delimiter=delimiter)
    try:
        found = (number for number, cells in enumerate(reader, start=1) if number > before and cells)
        for place, number in enumerate(found):
            if place == row:
                return number
    except csv.Error:  # a value of more than 131,072 letters
        pass
    return before + 1 + row
