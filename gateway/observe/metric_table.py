"""The gateway's figures, each declared once: its name, labels and meaning, and how it is merged.

The documented list, the samples that are counted and the sums over several processes are all read
off this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Literal

CALLS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LAGS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
# Prometheus' kinds; and what is taken of two processes' values that have the same labels.
MetricKind = Literal["counter", "gauge", "histogram", "info"]
Merge = Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric. `name` is what a query says, without a histogram's `_bucket` and the like.

    Counters and histograms are always sums.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    merge: Merge = add
    buckets: tuple[float, ...] = ()


def _figure(
    kind: MetricKind,
    end: str,
    name: str,
    told: str,
    merge: Merge = add,
    buckets: tuple[float, ...] = (),
) -> Figure:
    """Of a name with its labels, as queries write it: `name{label,label}`."""
    name, _, labels = name.rstrip("}").partition("{")
    several = tuple(labels.split(",")) if labels else ()
    return Figure(f"gateway_{name}{end}", kind, told, several, merge, buckets)


_counter = partial(_figure, "counter", "_total")
_gauge = partial(_figure, "gauge", "")
_highest, _lowest = partial(_gauge, merge=max), partial(_gauge, merge=min)
_histogram = partial(_figure, "histogram", "")
_info = partial(_figure, "info", "_info", merge=max)


def _of_process(name: str, told: str) -> Figure:
    """Each process tells its own; while one is replaced, two have the same name for a moment."""
    return Figure(f"process_{name}", "gauge", told, ("process",), max)


FIGURES = (
    _counter("requests{operation,status}", "Calls by operation and status."),
    _histogram(
        "request_seconds{operation}",
        "Seconds from the head of a call to its answer, by operation.",
        buckets=CALLS,
    ),
    _gauge("calls_in_flight", "Calls that are under way now."),
    _lowest(
        "places_per_key",
        "Calls of one key that may be under way at once in a process: fewer than in_flight_per_key"
        " while its event loop comes late.",
    ),
    _counter(
        "calls_turned_away{reason}",
        "Calls for which there was no room in time, uncounted: their key had too many under way"
        " (key), the process had (process), or bodies had too many bytes (body).",
    ),
    _gauge("connections", "Connections of partners that are open now."),
    _counter(
        "connections_turned_away{reason}",
        "Connections refused since their address or the process held too many (address, process) or"
        " no file was left (files), closed to make room (idle, or stranger: without a key) or for a"
        " reader that took too long (reader), and handshakes that failed (tls).",
    ),
    _counter(
        "authentication_failures{reason}",
        "Calls without a usable key, also with one from outside its networks.",
    ),
    _counter("limit_hits", "Calls that the limiter was asked about, denied ones included."),
    _counter("limit_denials", "Calls beyond a key's hour, and bookings beyond its day."),
    _counter("limiter_local", "Calls that a process counted alone, as the limiter was down."),
    _highest(
        "limiter_degraded",
        "Whether calls are counted by this process alone, since the shared limiter does not"
        " answer: 0 no, 1 yes.",
    ),
    _counter("records_shown{resource,level}", "Records in answers, by resource and access level."),
    _counter(
        "fields_hidden{resource,level}",
        "Fields that the policy left out of these records, masked ones not counted; a field of"
        " the objects in a list counts once per record.",
    ),
    _counter(
        "unusable_values{kind,resource,field}",
        "Values and rows of the practice system that could not be used: unknown codes, unreadable"
        " values, rows without an id.",
    ),
    _counter(
        "backend_calls{verb,resource,outcome}",
        "Calls of the practice system: what was asked of which resource, and what became of it.",
    ),
    _histogram(
        "backend_seconds{verb,resource}",
        "Seconds that the practice system took, the wait for room not counted, by verb and"
        " resource.",
        buckets=CALLS,
    ),
    _highest(
        "backend_breaker",
        "Whether the practice system is asked: 0 yes, 1 by one call that tries it, 2 no.",
    ),
    _gauge("backend_pool_in_use", "Calls of the practice system that are under way now."),
    _gauge("backend_pool_waiting", "Calls that wait for room to ask the practice system."),
    _counter(
        "cache_reads{outcome}",
        "Reads of what may be remembered: hit (told from memory), joined (told with another call's"
        " answer), miss (asked).",
    ),
    _gauge("cache_entries", "Answers that are remembered."),
    _gauge("cache_bytes", "Bytes that these take."),
    _highest("ledger_bookings{state}", "Bookings in the ledger, by state."),
    _highest(
        "ledger_oldest_unknown_seconds",
        "Age of the oldest booking whose outcome is not known; 0 where there is none.",
    ),
    _gauge("ledger_unwritten", "Outcomes of bookings that wait for the store to be written."),
    _highest(
        "bookings_overwritten",
        "Coming bookings over which the practice's desk has written something else.",
    ),
    _info("policy{hash,file_hash}", "The policy in force, and what lies in its file: always 1."),
    _highest(
        "policy_loaded_timestamp_seconds",
        "When the policy in force began to be so, in seconds since 1970.",
    ),
    _highest(
        "policy_stale",
        "Whether the policy's file is another one than what runs, since it was refused or is held"
        " back: 0 no, 1 yes.",
    ),
    _highest(
        "policy_cases_failing",
        "Cases beside the policy that fail, or mistakes in their file: until it is 0, nothing that"
        " the policy's file shows more takes effect.",
    ),
    _highest(
        "policy_behind",
        "Workers that have served by another policy than the one in force for over three seconds.",
    ),
    _counter(
        "policy_reloads{outcome}", "Changes of the policy's file: loaded, refused, held back."
    ),
    _highest("keys_loaded", "Keys that are known and not revoked."),
    _highest(
        "keys_age_seconds",
        "Seconds since the keys were read from the store, or known to be unchanged there.",
    ),
    _lowest("ready", "Whether every part is ready: 0 no, 1 yes."),
    _lowest("part_ready{part}", "The same of each part, as /readyz tells it."),
    _gauge("log_lines_waiting{log}", "Lines of a log (access, audit) that wait to be written."),
    _lowest("log_writable{log}", "Whether a log can be written: 0 no, 1 yes."),
    _counter("log_lines_lost", "Lines of the access log and the audit that could not be kept."),
    _counter("usage_lost", "Calls that are missing in the usage of their keys."),
    _counter("spans_lost", "Spans of traces that no collector took."),
    _histogram(
        "loop_lag_seconds",
        "How late the event loop came back to a task that waits a tenth of a second at a time.",
        buckets=LAGS,
    ),
    _highest("loop_lag_max_seconds", "The largest of these in the last minute."),
    _of_process("start_time_seconds", "When the process began, in seconds since 1970."),
    Figure("process_cpu_seconds_total", "counter", "Seconds of CPU that were used, by all."),
    _of_process("resident_memory_bytes", "Memory that the process holds."),
    _of_process("open_fds", "Open files and sockets."),
    _of_process("max_fds", "How many may be open."),
)
BY_NAME: Mapping[str, Figure] = {each.name: each for each in FIGURES}
