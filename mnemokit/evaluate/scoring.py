"""The one call: would the memory have been right, beside baselines that are hard to beat?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.edge_models import EdgeModel
from mnemokit.evaluate.fitting import EdgeFit, RunFit, fit_edges, fit_runs
from mnemokit.evaluate.intervals import REPLICATES
from mnemokit.evaluate.next_executor import predict_next_log
from mnemokit.evaluate.predictions import Predictions
from mnemokit.evaluate.procedures import predict_log
from mnemokit.evaluate.reading import passing_log_of, run_log_of, runs_of
from mnemokit.evaluate.recalls import Missing, logged_choices, off_policy, predict_recalls
from mnemokit.evaluate.run_models import RunModel
from mnemokit.evaluate.sweeping import EDGE_PARAMS, RUN_PARAMS, SWEEP_REPLICATES, Grid, sweep_logs
from mnemokit.instants import Instant
from mnemokit.memory import Memory

Target = Literal["runs", "next_executor", "recall"]
TARGETS = ("runs", "next_executor", "recall")


def score(
    mem: Memory,
    target: Target | str = "runs",
    *,
    models: Sequence[RunModel] | Sequence[EdgeModel] | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
    by: Sequence[str] = (),
    versions: str = "separate",
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Would the memory have been right? Every prediction is made from what was known strictly before.

    Args:
        mem: A memory; it is only read.
        target: ``runs``: the probability of success that the ranking gave just before each run, against what happened.
            ``next_executor``: which executor the edges expected next, against who came. ``recall``: how high the lists
            that were shown had what turned out to be right.
        models: Models beside the memory's own and the baselines; None adds rivals with untuned parameters. Fits of
            `fit` are models too.
        since: Score only from this instant on; what came before is learnt from.
        until: Score only what came before this instant.
        sessions: Score only these sessions.
        by: Also score by these columns: ``scope``, ``question``, ``depth``, ``executor_version`` for runs;
            ``src_executor``, ``src_version``, ``seen`` for the next executor.
        versions: For the next executor: ``separate``, or ``collapsed`` to leave versions out.
        rng: Draws sessions for the intervals; left out, a generator with a fixed, documented seed.
        replicates: Draws of the bootstrap.

    Returns:
        One row per model and metric, with a 95 % interval over sessions and the number of sessions; then one row per
        model, metric and baseline with the paired difference (column ``versus``). See `table.RESULT_SCHEMA`. Where
        there is too little to say anything, the interval is as wide as can be and ``note`` says so.

    Raises:
        InvalidInput: If the target is none, a model has the name of a baseline, or a fit would be scored on its own
            training rows.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     table = mk.evaluate.score(mem, target="runs")
        >>> table["note"].unique().to_list()
        ['nothing to score']
    """
    made = predictions(mem, target, models=models, since=since, until=until, sessions=sessions, versions=versions)
    return made.table(by, rng=rng, replicates=replicates)


def predictions(
    mem: Memory,
    target: Target | str = "runs",
    *,
    models: Sequence[RunModel] | Sequence[EdgeModel] | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
    versions: str = "separate",
) -> Predictions:
    """The raw predictions behind `score`: ``.long()`` a row each, ``.bins()`` the calibration curve, ``.table()``.

    Args:
        mem: A memory; it is only read.
        target: ``runs``, ``next_executor`` or ``recall``.
        models: Models beside the memory's own and the baselines; None adds rivals with untuned parameters.
        since: Predict only from this instant on; what came before is learnt from.
        until: Predict only what came before this instant.
        sessions: Predict only these sessions.
        versions: For the next executor: ``separate``, or ``collapsed`` to leave versions out.

    Returns:
        The predictions; ``rows`` says what each was about, ``p`` what each model said.

    Raises:
        InvalidInput: As `score`.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     _ = mem.reasonlets.capture("s", "q", {}, outcome="success", at="2025-08-01T00:00:00Z")
        ...     made = mk.evaluate.predictions(mem)
        >>> made.p["rank_rule"].tolist(), made.y.tolist()
        ([0.5], [1.0])
    """
    if target == "runs":
        return predict_log(
            run_log_of(mem),
            models=_run_models(models),
            rank_params=mem.rank_params,
            since=since,
            until=until,
            sessions=sessions,
        )
    if target == "next_executor":
        log = passing_log_of(mem, versions=versions)
        return predict_next_log(log, models=_edge_models(models), since=since, until=until, sessions=sessions)
    if target == "recall":
        if models is not None:
            raise InvalidInput("target='recall' scores the lists as they were shown; it takes no models")
        return predict_recalls(
            mem.frame("recalls"),
            mem.frame("recall_rows"),
            mem.frame("runs"),
            since=since,
            until=until,
            sessions=sessions,
        )
    raise InvalidInput(f"target must be one of {', '.join(TARGETS)}, not {target!r}; nothing was scored")


def fit(
    mem: Memory,
    target: Target | str = "runs",
    *,
    family: str | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
    versions: str = "separate",
) -> RunFit | EdgeFit:
    """Find the parameters that would have been best on a training period, by maximum likelihood.

    Args:
        mem: A memory; it is only read.
        target: ``runs`` (prior strength k, by empirical Bayes, and what the family has) or ``next_executor`` (decay,
            reinforcement and start weight).
        family: One of `fitting.RUN_FAMILIES` or `fitting.EDGE_FAMILIES`; left out, the memory's own rule.
        until: The training period ends before this instant. Of its runs only what was known by then is learnt from,
            so that verdicts given later change no fit.
        sessions: Or: these sessions are the training period.
        versions: For the next executor: as `score` takes it.

    Returns:
        The fit, with its curve. It is a model: ``score(mem, target, models=[fit], since=...)``. It is never scored on
        its own training rows: that is refused, also where the same log stands in another memory. Where it is scored on
        what came before some of its training rows, ``note`` says so.

    Raises:
        InvalidInput: If no training period is named, or the target or the family is none.
        NotEnoughData: If the training period has fewer than 10 sessions.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     for day in range(1, 13):
        ...         _ = mem.reasonlets.capture("s", "q", {}, outcome="success", at=f"2025-08-{day:02}T00:00:00Z")
        ...     found = mk.evaluate.fit(mem, "runs", until="2025-08-12T00:00:00Z")
        >>> found.family, found.n, sorted(found.params)
        ('rank_rule', 11, ['k'])
    """
    if target == "runs":
        return fit_runs(run_log_of(mem), family or "rank_rule", until=until, sessions=sessions)
    if target == "next_executor":
        return fit_edges(
            passing_log_of(mem, versions=versions), family or "mnest_weights", until=until, sessions=sessions
        )
    raise InvalidInput(f"target must be runs or next_executor, not {target!r}; nothing was fitted")


def sweep(
    mem: Memory,
    grid: Grid,
    *,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
    rng: np.random.Generator | None = None,
    replicates: int = SWEEP_REPLICATES,
) -> pl.DataFrame:
    """Score every combination of parameters on the stored log; the store is only read.

    Args:
        mem: A memory.
        grid: Parameter to values, for instance ``{"decay_lambda": [0.01, 0.1], "k": [1, 2, 5]}``. Of edges:
            decay_lambda (per day), reinforcement, start_weight, max_weight, demote_below, purge_below; of procedures: k
            (runs), parent_rate, half_life_days (None: never forget).
        since: Score only from this instant on.
        until: Score only what came before this instant.
        sessions: Score only these sessions.
        rng: Draws sessions for the intervals; left out, a generator with a fixed, documented seed.
        replicates: Draws of the bootstrap.

    Returns:
        One row per combination, target and metric: the grid's columns, then ``model, target, metric, value, low, high,
        n_sessions, n, seconds, note``, as in the frame that `score` gives. Parameters of edges are scored by the next
        executor, those of procedures by runs. The best row of a sweep was chosen on what it was scored on: use `fit`
        and a later period to claim anything.

    Raises:
        InvalidInput: If a parameter cannot be swept.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     _ = mem.reasonlets.capture(scope="s", question="q", graph={"nodes": [], "edges": [], "properties": {}},
        ...                                outcome="success")
        ...     table = mk.evaluate.sweep(mem, {"k": [1.0, 2.0]})
        >>> table.filter(metric="brier").select("k", "value").rows()
        [(1.0, 0.25), (2.0, 0.25)]
    """
    edges, procedures = set(grid) & set(EDGE_PARAMS), set(grid) & set(RUN_PARAMS)
    return sweep_logs(
        grid,
        runs=run_log_of(mem) if procedures or not edges else None,
        passings=passing_log_of(mem) if edges or not procedures else None,
        since=since,
        until=until,
        sessions=sessions,
        rng=rng,
        replicates=replicates,
    )


def policy_value(
    mem: Memory,
    order: str = "score",
    *,
    missing: Missing | str = "refuse",
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """What would following the first by another order have earned? Inverse-propensity estimates from logged recalls.

    Args:
        mem: A memory; it is only read. The propensity is ``propensity`` in the provenance of the run that followed the
            recall: the probability with which the logged policy chose it.
        order: ``score``, ``similarity`` or ``rate``.
        missing: What becomes of recalls whose run has no propensity: ``refuse`` the estimate, or ``leave_out`` those
            recalls, which ``note`` then counts. What is left must not have been chosen by how it went.
        rng: Draws sessions.
        replicates: Draws of the bootstrap.

    Returns:
        A frame of `recalls.OFF_POLICY_SCHEMA`; ``model`` is ``logged``, or ``first_by_`` and the order.

    Raises:
        InvalidInput: If the order or ``missing`` is none of these, or a propensity is not above 0 and at most 1.
        NotEnoughData: If a propensity was not logged (with ``leave_out``: if none was): then no such estimate means
            anything.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     made = mem.reasonlets.capture("s", "q", {}, at="2025-08-01T00:00:00Z").reasonlet_id
        ...     asked = mem.reasonlets.recall("q", scope="s", at="2025-08-02T00:00:00Z")["recall_id"][0]
        ...     _ = mem.reasonlets.record_run(made, "success", recall_id=asked, provenance={"propensity": 0.5})
        ...     mk.evaluate.policy_value(mem).select("model", "estimator", "value").rows()[:2]
        [('logged', 'logged', 1.0), ('first_by_score', 'ips', 2.0)]
    """
    runs, _, _ = runs_of(mem)
    logged = logged_choices(mem.frame("recalls"), mem.frame("recall_rows"), runs, order)
    return off_policy(logged, missing=missing, model=f"first_by_{order}", rng=rng, replicates=replicates)


def _run_models(models: Sequence[RunModel] | Sequence[EdgeModel] | None) -> list[RunModel] | None:
    if models is None:
        return None
    wrong = [model.name for model in models if not isinstance(model, RunModel)]
    if wrong:
        raise InvalidInput(f"{wrong[0]!r} is no model of runs: it has no predict(log); nothing was scored")
    return [model for model in models if isinstance(model, RunModel)]


def _edge_models(models: Sequence[RunModel] | Sequence[EdgeModel] | None) -> list[EdgeModel] | None:
    if models is None:
        return None
    wrong = [model.name for model in models if not isinstance(model, EdgeModel)]
    if wrong:
        raise InvalidInput(f"{wrong[0]!r} is no model of edges: it has no weigher(log); nothing was scored")
    return [model for model in models if isinstance(model, EdgeModel)]
