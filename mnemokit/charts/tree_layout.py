"""Where the versions of lineages stand when they are drawn as trees: a plain layout, in frames."""

from __future__ import annotations

import polars as pl

from mnemokit.errors import InvalidInput


def with_roots(nodes: pl.DataFrame) -> pl.DataFrame:
    """Find the root and the depth of every version, all at once, by doubling the steps upward.

    Args:
        nodes: ``reasonlet_id``, ``parent_id``. A parent that is not in the frame counts as none.

    Returns:
        The nodes with ``root_id`` and ``depth`` (the root has 0), in the order given.

    Raises:
        InvalidInput: If the parents form a circle.

    Example:
        >>> with_roots(pl.DataFrame({"reasonlet_id": ["a", "b", "c"], "parent_id": [None, "a", "b"]})).rows()
        [('a', None, 'a', 0), ('b', 'a', 'a', 1), ('c', 'b', 'a', 2)]
    """
    known = nodes["reasonlet_id"].implode()
    jumps = nodes.select("reasonlet_id", up=pl.when(pl.col("parent_id").is_in(known)).then("parent_id")).select(
        "reasonlet_id",
        up=pl.coalesce("up", "reasonlet_id"),
        steps=pl.col("up").is_not_null().cast(pl.Int64),
    )
    for _ in range(nodes.height.bit_length() + 1):
        further = jumps.join(
            jumps.select(up="reasonlet_id", next="up", more="steps"), on="up", how="left", maintain_order="left"
        )
        moved = further["more"].sum()
        jumps = further.select("reasonlet_id", up="next", steps=pl.col("steps") + pl.col("more"))
        if moved == 0:
            return nodes.drop("root_id", "depth", strict=False).join(
                jumps.rename({"up": "root_id", "steps": "depth"}),
                on="reasonlet_id",
                how="left",
                maintain_order="left",
            )
    raise InvalidInput("the parents of these reasonlets form a circle; nothing was drawn")


def lay_out(nodes: pl.DataFrame) -> pl.DataFrame:
    """Give every version of the lineages a place: its depth to the right, and a row of its own for every branch.

    A first child goes on in its parent's row; each further child opens the next free row below. Lineages come one below
    the other, in the order of their roots.

    Args:
        nodes: ``reasonlet_id``, ``parent_id``, and ``root_id`` and ``depth`` as ``with_roots`` gives them; siblings
            stand in the order of the rows.

    Returns:
        The nodes with ``row`` (from 0, downward) and ``parent_row`` (null for a root).

    Example:
        >>> nodes = with_roots(pl.DataFrame({"reasonlet_id": ["a", "b", "c"], "parent_id": [None, "a", "a"]}))
        >>> lay_out(nodes).select("reasonlet_id", "depth", "row", "parent_row").rows()
        [('a', 0, 0, None), ('b', 1, 0, 0), ('c', 1, 1, 0)]
    """
    children: dict[str, list[str]] = {}
    roots: list[str] = []
    for node, parent, depth in nodes.select("reasonlet_id", "parent_id", "depth").iter_rows():
        if depth == 0:
            roots.append(node)
        else:
            children.setdefault(parent, []).append(node)
    rows: dict[str, int] = {}
    free = 0
    for root in roots:
        free = _place(root, free, children, rows)
    placed = pl.DataFrame({"reasonlet_id": list(rows), "row": list(rows.values())}, schema=_PLACED)
    return nodes.join(placed, on="reasonlet_id", how="left", maintain_order="left").join(
        placed.rename({"reasonlet_id": "parent_id", "row": "parent_row"}),
        on="parent_id",
        how="left",
        maintain_order="left",
    )


_PLACED = {"reasonlet_id": pl.String, "row": pl.Int64}


def _place(root: str, first_free: int, children: dict[str, list[str]], rows: dict[str, int]) -> int:
    """Place one lineage depth first, without recursion; gives the next free row."""
    free = first_free
    waiting: list[tuple[str, int | None]] = [(root, None)]
    while waiting:
        node, row = waiting.pop()
        if row is None:
            row, free = free, free + 1
        rows[node] = row
        below = children.get(node, [])
        waiting.extend((child, None) for child in reversed(below[1:]))
        waiting.extend((child, row) for child in below[:1])
    return free
