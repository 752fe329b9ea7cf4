"""When each edge will fade away if nothing comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.fold.edge_weights import LIVE_STATES, Floats, fraction_left, live_floor
from mnemokit.fold.frames import INSTANT
from mnemokit.instants import DAY_US, to_us
from mnemokit.records import EdgeParams, MnestState

NEEDED = ("weight", "ts_last", "decay_lambda", "state")
FAR = to_us(datetime(9999, 12, 30, tzinfo=UTC))


def fades_at(mnests: pl.DataFrame, params: EdgeParams | None = None) -> pl.DataFrame:
    """Say when each live edge falls below its threshold, and which night ends it.

    Args:
        mnests: Records, with weight, ts_last, decay_lambda and state; untimed if there is.
        params: The edge rule; the default one if left out.

    Returns:
        The active and proto records with three more columns: ``fades_at``, when the weight meets the threshold
        (``ts_last + ln(weight / threshold) / lambda`` days); ``ends_at``, the first nightly ager (03:00 UTC) that finds
        it below; ``ends_as``: decaying or purged. Instants are null where it never fades: a rate of 0, a last passing
        without a time, or a date beyond the year 9999. The soonest come first.

    Raises:
        InvalidInput: If a column is missing.

    Example:
        >>> from datetime import UTC, datetime
        >>> day = datetime(2025, 8, 1, tzinfo=UTC)
        >>> edges = pl.DataFrame({"weight": [0.3], "ts_last": [day], "decay_lambda": [0.018], "state": ["active"]})
        >>> fades_at(edges).select("ends_at", "ends_as").row(0)
        (datetime.datetime(2025, 8, 24, 3, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC')), 'decaying')
    """
    params = params or EdgeParams()
    missing = [name for name in NEEDED if name not in mnests.columns]
    if missing:
        raise InvalidInput(f"a frame of mnests needs {', '.join(missing)}; it has {', '.join(mnests.columns)}")
    live = mnests.filter(pl.col("state").is_in(LIVE_STATES))
    proto = (live["state"] == MnestState.PROTO.value).to_numpy()
    floor = np.where(proto, live_floor("proto", params), live_floor("active", params))
    threshold = np.where(proto, params.purge_below, params.demote_below)
    weight, rate = live["weight"].to_numpy(), live["decay_lambda"].to_numpy()
    since = live["ts_last"].cast(INSTANT).to_physical().to_numpy()
    timed = ~live["untimed"].to_numpy() if "untimed" in live.columns else np.ones(live.height, dtype=np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        days = np.maximum(np.log(weight / threshold), 0.0) / rate
    fades = timed & np.isfinite(days) & (days * DAY_US + since < FAR)
    meets = since + np.where(fades, days * DAY_US, 0.0).astype(np.int64)
    ends = _first_night(weight, rate, floor, since, meets, params)
    return (
        live.with_columns(
            fades_at=pl.Series(meets).cast(INSTANT),
            ends_at=pl.Series(ends).cast(INSTANT),
            ends_as=pl.Series(np.where(proto, "purged", "decaying"), dtype=pl.String),
        )
        .with_columns(pl.when(pl.Series(fades)).then(pl.col("fades_at", "ends_at")))
        .sort("fades_at", nulls_last=True, maintain_order=True)
    )


def _first_night(
    weight: Floats, rate: Floats, floor: Floats, since: np.ndarray, meets: np.ndarray, params: EdgeParams
) -> np.ndarray:
    """The first night after ``since`` whose faded weight is below the floor, near the instant where it meets it."""
    offset = timedelta(hours=params.tick_hour) // timedelta(microseconds=1)
    earliest = (since - offset) // DAY_US + 1
    night = np.maximum((meets - offset) // DAY_US, earliest)
    for _ in range(2):
        left = fraction_left(rate, (night * DAY_US + offset - since) / DAY_US, np.exp)
        night = night + (weight * left >= floor)
    return night * DAY_US + offset
