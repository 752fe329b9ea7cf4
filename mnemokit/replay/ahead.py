"""Reading on while what was read is worked on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Generator[T]:
    """The same items, each made by a thread of its own while the caller still works on the one before.

    At most one item waits. What ``items`` raises is raised here, when its turn has come.

    Example:
        >>> list(one_ahead(iter("abc")))
        ['a', 'b', 'c']
    """

    def following() -> list[T]:
        return list(islice(items, 1))

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="mnemokit-reading") as reading:
        coming = reading.submit(following)
        while found := coming.result():
            coming = reading.submit(following)
            yield found[0]
