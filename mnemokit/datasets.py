"""Small real logs that come with mnemokit: structure only, no message text. Nothing is ever downloaded."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mnemokit.errors import NotFound

PLACES = (Path(__file__).parent / "data", Path(__file__).parent.parent / "data")


def tau2() -> pl.DataFrame:
    """280 sessions of tau2-bench: two versions of an agent on 100 tasks in three domains.

    Source: sierra-research/tau2-bench, MIT licence (see data/README.md).

    Returns:
        A frame of turns (`mnemokit.turns.frame.TURNS_SCHEMA`): 3,866 tool calls, ``ts`` in UTC.

    Raises:
        NotFound: If the installation lacks its data folder.

    Example:
        >>> tau2().height
        3866
    """
    return _load("tau2_turns.parquet")


def agb() -> pl.DataFrame:
    """463 runs of Auto-GPT-Benchmarks by eight agents in July to September 2023.

    Source: Significant-Gravitas/Auto-GPT-Benchmarks, MIT licence (see data/README.md).

    Returns:
        A frame of turns: one row per test that was really attempted (4,698; 2,176 went well), and one without executor
        for a run in which none was. ``ts`` is the run's completion in UTC.

    Raises:
        NotFound: If the installation lacks its data folder.

    Example:
        >>> agb().filter(ok=True).height
        2176
    """
    return _load("agb_turns.parquet")


def reflexion() -> pl.DataFrame:
    """Attempts of Reflexion agents at the tasks of ALFWorld and WebShop, trial after trial.

    Source: noahshinn/reflexion, MIT licence (see data/README.md).

    Returns:
        A frame of turns: one row without executor per attempt; no times. Scope
        ``alfworld_runs/reflexion_run_logs`` has 334 attempts, 134 of them successful.

    Raises:
        NotFound: If the installation lacks its data folder.

    Example:
        >>> reflexion().filter(scope="alfworld_runs/reflexion_run_logs").height
        334
    """
    return _load("reflexion_turns.parquet")


def reflexion_memory() -> pl.DataFrame:
    """The notes that the agents of `reflexion` wrote between trials: who, when and how long, not what.

    Returns:
        A frame of memory writes (`mnemokit.turns.memory_writes.MEMORY_SCHEMA`) without content; no times.

    Raises:
        NotFound: If the installation lacks its data folder.

    Example:
        >>> "content_hash" in reflexion_memory().columns
        True
    """
    return _load("reflexion_memory.parquet")


def generative_agents() -> pl.DataFrame:
    """The sessions of three personas of Generative Agents; they hold no steps, see `generative_agents_memory`.

    Source: Turing-Project/SimAIWorld, Apache-2.0 licence (see data/README.md).

    Returns:
        A frame of turns: one row without executor per persona.

    Raises:
        NotFound: If the installation lacks its data folder.

    Example:
        >>> generative_agents().height
        3
    """
    return _load("generative_agents_turns.parquet")


def generative_agents_memory() -> pl.DataFrame:
    """What three personas of Generative Agents remember over two simulated days: when, of which kind, from what.

    Returns:
        A frame of memory writes, no content: 2,105 nodes and their parents; ``ts`` is the simulation's clock, as UTC.

    Raises:
        NotFound: If the installation lacks its data folder.

    Example:
        >>> generative_agents_memory().height
        2105
    """
    return _load("generative_agents_memory.parquet")


def _load(name: str) -> pl.DataFrame:
    for place in PLACES:
        if (place / name).is_file():
            return pl.read_parquet(place / name)
    raise NotFound(f"{name} is not beside this installation of mnemokit; nothing is downloaded: install it again")
