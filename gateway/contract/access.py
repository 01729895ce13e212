"""Declares permissions and access levels: what a key may call, and how much of a record it sees."""

from collections.abc import Mapping
from enum import StrEnum


class Permission(StrEnum):
    """A right to call some of the operations."""

    PATIENT_READ = "PATIENT_READ"
    CLIENT_READ = "CLIENT_READ"
    APPOINTMENT_READ = "APPOINTMENT_READ"
    APPOINTMENT_CREATE = "APPOINTMENT_CREATE"
    CONSULTATION_READ = "CONSULTATION_READ"
    INVOICE_READ = "INVOICE_READ"
    STOCK_READ = "STOCK_READ"


class AccessLevel(StrEnum):
    """How much of a record is visible; each level sees what the one before it sees, and more."""

    BASIC = "BASIC"
    STANDARD = "STANDARD"
    FULL = "FULL"


LEVELS = tuple(AccessLevel)

LEVEL_SUMMARIES: Mapping[AccessLevel, str] = {
    AccessLevel.BASIC: "identifiers and minimal information (names, species, statuses)",
    AccessLevel.STANDARD: "also the usual business information (contacts, dates, amounts)",
    AccessLevel.FULL: "all that the clinic opens",
}
