"""Where versions stand, by climbing from each to its root."""

from __future__ import annotations


def places(parents):
    """reasonlet_id -> (root, depth, path from the root), from reasonlet_id -> parent_id."""
    found = {}
    for name in parents:
        path = [name]
        while parents.get(path[0]) in parents and parents[path[0]] is not None:
            path.insert(0, parents[path[0]])
        found[name] = (path[0], len(path) - 1, path)
    return found


def relatives(parents):
    """reasonlet_id -> (siblings, children, descendants), counted one by one."""
    paths = {name: place[2] for name, place in places(parents).items()}
    return {
        name: (
            sum(other != name and parents[other] == parents[name] for other in parents)
            if parents[name] in parents
            else 0,
            sum(parents[other] == name for other in parents),
            sum(name in paths[other][:-1] for other in parents),
        )
        for name in parents
    }
