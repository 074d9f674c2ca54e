"""The recipe of a graph: how its tables were read, so that the same or other tables can be read in the same way.

A recipe stores the columns that hold the ids, the ends of an edge and the label, the classes, and how each other column
became attributes. It is plain JSON in the folder of a run. A later command therefore reads the same graph, or a graph
with new nodes, without any options.
"""

import json
from dataclasses import dataclass, fields
from typing import Any

from bgcl.data.columns import Column
from bgcl.data.long_form import LongForm
from bgcl.data.structure import structure_names
from bgcl.errors import BGCLError, one_line
from bgcl.validation import checked

FORMAT = 1
Label = str | int | float | bool


@dataclass(frozen=True)
class Recipe:
    """How a graph was read from tables.

    Attributes:
        source: column of the edges with the first node of an edge.
        target: column of the edges with the second node of an edge.
        id: column of the nodes with their ids; None if there was no table of nodes.
        label: column of the nodes with their labels; None if there are no labels.
        classes: the classes, in the order of their numbers; None if there are no classes.
        columns: how each other column of the nodes became attributes.
        structural: whether the attributes were made from the edges, because there were no other attributes.
        skip_unknown: whether edges to nodes that are not in the table are skipped.
        edges_file: path of the edges; empty if they were in memory.
        nodes_file: path of the nodes; empty if they were in memory or beside the edges.
        labels_file: path of the labels; empty if they were in memory, beside the edges, or a column of the nodes.
        label_id: column of the table of labels with the ids of nodes; None if there was no table of labels.
        missing_label: the labels that mean "no label".
        weight: column of the edges with their weights; None if they have no weights.
        directed: whether the directions of edges count.
        edge_type: column of the edges with their types; None if they have no types.
        node_type: column of the nodes with their types; None if they have no types.
        bipartite: whether the two columns of the edges hold nodes of two kinds.
        exact: whether ids and labels are compared letter by letter.
        task: whether labels are "classes" or "numbers" to predict; None if there are none.
        many_labels: how a node may have several labels: what separates them, "lists" or "rows"; None: it has one.
        delimiter, header, no_header, decimal: how the user said that the files are written.

    >>> import bgcl
    >>> data = bgcl.graph_from({"from": [1, 2], "to": [2, 3]}, {"id": [1, 2, 3], "age": [31, 45, 27]})
    >>> data.recipe.source, data.recipe.id, data.recipe.attribute_names()
    ('from', 'id', ['age'])
    """

    source: str
    target: str
    id: str | None
    label: str | None
    classes: tuple[Label, ...] | None
    columns: tuple[Column, ...]
    structural: bool
    skip_unknown: bool
    edges_file: str = ""
    nodes_file: str = ""
    labels_file: str = ""
    label_id: str | None = None
    missing_label: tuple[str, ...] | None = None
    weight: str | None = None
    directed: bool = False
    edge_type: str | None = None
    node_type: str | None = None
    bipartite: bool = False
    exact: bool = False
    delimiter: str | None = None
    header: tuple[str, ...] = ()
    no_header: tuple[str, ...] = ()
    decimal: str | None = None
    task: str | None = None
    many_labels: str | None = None

    def attribute_names(self) -> list[str]:
        """The name of each attribute, in order."""
        if self.structural:
            return structure_names()
        return [name for column in self.columns for name in column.attribute_names()]

    def columns_of_edges(self) -> list[str]:
        """The columns of the edges that are used."""
        return [name for name in (self.source, self.target, self.weight, self.edge_type) if name]

    def long_form(self) -> LongForm | None:
        """The attributes in long form, if there are some."""
        return next((column for column in self.columns if isinstance(column, LongForm)), None)

    def to_json(self) -> str:
        """The recipe as JSON."""
        values = vars(self) | {"columns": [column.to_dict() for column in self.columns], "format": FORMAT}
        return json.dumps(values, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> "Recipe":
        """Read a recipe from JSON.

        Args:
            text: what `to_json` returned.
            where: name of the file, for errors.

        Raises:
            BGCLError: if the text is damaged, or was written by another version of bgcl.
        """
        with one_line(where):
            values = json.loads(text)
            if values.pop("format") != FORMAT:
                raise BGCLError(f"{where} was written by another version of bgcl. Train again.")
            columns = tuple(_column(column) for column in values["columns"])
            _refuse_unknown(values, cls)
            return checked(cls, values | {"columns": columns})

    def __str__(self) -> str:  # short, because printing a `Data` prints it
        return f"Recipe({len(self.columns)} columns)"


def _column(values: Any) -> Column:
    """A column from JSON, with values of the right types."""
    kind = Column.kinds[values.pop("kind")]
    _refuse_unknown(values, kind)
    return checked(kind, values)


def _refuse_unknown(values: dict[str, Any], kind: type) -> None:
    unknown = values.keys() - {field.name for field in fields(kind)}
    if unknown:
        raise ValueError(f"unknown entry '{min(unknown)}'")
