"""The names of models in a table: each once, and a baseline's only for the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from mnemokit.errors import InvalidInput


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What it is called in a result."""
        ...


M = TypeVar("M", bound=Named)


def with_baselines(models: Sequence[M], baselines: Sequence[M]) -> list[M]:
    """The models, and the baselines that are not among them.

    Raises:
        InvalidInput: If two models have one name, or a model has the name of a baseline that it is not.

    Example:
        >>> from mnemokit.evaluate.run_models import Constant, LastN
        >>> [model.name for model in with_baselines([LastN(3)], [Constant()])]
        ['last_3', 'constant']
    """
    own = {baseline.name: baseline for baseline in baselines}
    names = [model.name for model in models]
    for model in models:
        if names.count(model.name) > 1:
            raise InvalidInput(
                f"two models are called {model.name!r}; give one of them another name; nothing was scored"
            )
        if model.name in own and model != own[model.name]:
            raise InvalidInput(
                f"a model is called {model.name!r}, which is the name of a baseline; give it another name; "
                "nothing was scored"
            )
    return [*models, *(baseline for baseline in baselines if baseline.name not in names)]
