"""Reads what every process of a gateway reads once, in the server of which commands are forks."""

from gateway.admin.words import catalogue
from gateway.events import event_table

catalogue()
event_table()
