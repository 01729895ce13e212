"""The gateway beside its peers: equal work on one machine (`make bench-peers`).

Equal work is: find the key (401), its permission (403), count the call against its hour and tell
what is left (429), look at the id (400), ask the backend (404), decode, keep the fields that the
key's level opens, encode. Before anything is measured each target is asked for each of these; one
that does not do its work is left out. The bare handler does none of it: it is the reference.

- The target runs on one core, the load and the backend on another; CPU is the target's own.
- Rounds go from one target to the next, so that a slow spell of the machine meets all of them. A
  ratio is formed within a round; what is shown is the median of the rounds, and the spread.
- Reads that are not cached go round 1,024 ids or lists: whoever joins equal calls that are under
  way gains nothing. Cached ones go round 100 ids or 20 lists, within what each target remembers.
- The added latency is that of an open loop at a low rate, less that of the backend when it is
  asked directly in the same round. The bare handler's is what it costs to wake another core.
- A row in which anything but a 2xx came back is no result, and says so.

In the peers' favour: each looks for one of three keys in the clear, and does without what the
README's table says it lacks.
"""
