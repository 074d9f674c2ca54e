"""Names of columns that say what a column holds."""

import re

ENDS = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"), ("citing", "cited"),
    ("source_id", "target_id"), ("from_id", "to_id"), ("node1", "node2"), ("node_1", "node_2"), ("id1", "id2"),
    ("id_1", "id_2"), ("fromnodeid", "tonodeid"), ("fromnode", "tonode"), ("from_node", "to_node"), ("src", "dest"),
    ("follower", "followee"), ("follower", "followed"), ("sender", "receiver"), ("sender", "recipient"),
    ("parent", "child"), ("caller", "callee"), ("origin", "destination"), ("start", "end"), ("payer", "payee"),
    ("subject", "object"), ("ego", "alter"), ("buyer", "seller"), ("rater", "ratee"), ("borrower", "lender"),
    ("left", "right"), ("user", "friend"), ("person", "friend"), ("child", "parent"), ("i", "j"), ("a", "b"),
)  # fmt: skip
IDS = ("id", "node_id", "nodeid", "node", "index", "key")
LABELS = ("label", "labels", "class", "y", "target")
WEIGHTS = ("weight", "weights", "w", "value", "count", "strength")
EDGE_TYPES = ("edge_type", "relation", "rel", "predicate", "type", "kind", "link_type", "relationship")
FEATURES = ("feature", "feature_id", "featureid", "attribute", "attribute_id", "variable", "word", "word_id", "term")
VALUES = ("value", "val", "weight", "count", "score", "tfidf", "tf-idf", "amount")
# Names of columns of a table of edges that hold no ids.
NOT_ENDS = frozenset({
    *WEIGHTS, "edge_weight", "time", "timestamp", "date", "datetime", "year", "month", "day", "since", "type",
    "edge_type", "relation", "rel", "kind", "label", "amount", "score", "rating", "sign", "distance", "comment", "note",
})  # fmt: skip
# Names of columns that number the rows of a table of edges.
ROW_NUMBERS = frozenset({"", "unnamed: 0", "index", "id", "row", "edge_id", "edgeid", "edge", "no", "nr", "#", "rowid"})
# Two of these in one row are nodes of two kinds, which may have the same numbers.
_KINDS = frozenset({
    "user", "item", "movie", "film", "product", "customer", "author", "paper", "book", "artist", "track", "song",
    "album", "query", "document", "doc", "word", "drug", "gene", "protein", "disease", "company", "person", "event",
    "group", "actor", "question", "tag", "page", "business", "restaurant", "job", "skill", "student", "course",
    "reader", "article", "shop", "store", "club", "member", "team", "player", "patient", "doctor", "venue", "topic",
    "community", "recipe", "ingredient", "director", "board", "account", "device", "merchant", "card",
})  # fmt: skip
# Words that name the part of a node in an edge, not its kind.
_PARTS = frozenset({
    *(word for pair in ENDS for word in pair), "friend", "manager", "neighbor", "neighbour", "contact", "partner",
    "reply", "replied", "mentioned", "other", "next", "previous", "second", "first", "reference", "referenced",
    "citing", "linked", "related", "similar", "supervisor", "spouse", "link", "dest",
})  # fmt: skip

# Letters such as a and b are names of columns, but also ids of nodes.
_KNOWN = {*IDS, *LABELS, *FEATURES, *VALUES, *NOT_ENDS, *_KINDS, *ROW_NUMBERS, *(n for pair in ENDS[:-2] for n in pair)}
_KNOWN -= {""}


def is_known(name: str) -> bool:
    """Whether a name is one that people give to a column, rather than a value."""
    lower = name.strip().lower()
    return lower in _KNOWN or bool(re.search(r"(^|[a-z_ ])id[0-9]?$", lower))


def words_of(name: str) -> list[str]:
    """The words of a name in lower case, without the word id: `userId` and `user_id` are `user`.

    >>> words_of("cited_paperID")
    ['cited', 'paper']
    """
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    words = re.findall(r"[^\W_0-9]+", re.sub(r"(?i)(?<=[a-z])id$", " id", spaced).lower())
    return [word for word in words if word != "id"]


def are_two_kinds(one: str, other: str) -> bool:
    """Whether two columns of the edges hold nodes of two kinds by their names, such as user_id and item_id.

    >>> are_two_kinds("user_id", "item_id"), are_two_kinds("paper_id", "cited_paper_id"), are_two_kinds("from", "to")
    (True, False, False)
    """
    first, second = words_of(one), words_of(other)
    if not first or not second or {*first} & {*second} or ({*first, *second} & _PARTS) - _KINDS:
        return False
    both_ids = all(re.search(r"(?i)id$", name.strip()) for name in (one, other))
    return both_ids or (first[-1] in _KINDS and second[-1] in _KINDS)


def are_alike(one: str, other: str) -> bool:
    """Whether two names differ only in a number, a letter or a word for the end: person1 and person2, idA and idB.

    >>> are_alike("person1", "person2"), are_alike("source user", "target user"), are_alike("km", "ort")
    (True, True, False)
    """
    one, other = one.strip().lower(), other.strip().lower()
    if one == other:
        return False
    ends = (("1", "2"), ("0", "1"), ("a", "b"), ("x", "y"), *ENDS)
    for first, second in ends:
        short = len(first) == 1
        pattern = rf"(?:(?<=[\W_\w]){first}$)" if short else rf"(?<![a-z]){re.escape(first)}(?![a-z])"
        if re.search(pattern, one) and re.sub(pattern, second, one, count=1) == other and len(one) > len(first):
            return True
    return False
