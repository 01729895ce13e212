"""Remembers the replies that were made of cached answers, for as long as these are cached."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from adapters.call_notes import CachedAnswer
from gateway.pipeline.call import Admitted, Reply
from gateway.policy.redactor import Redactor

# An operation, the id and the query as they came, the policy's hash, how records are shown, and the
# key to which cursors are bound.
Name = tuple[str, str, str, str | None, Redactor, str]
# Bytes of a view beside those of its query and its reply, and of each record's id.
OVERHEAD, ID = 500, 90


class RememberedReply(NamedTuple):
    """A reply, and the ids of the records that it shows."""

    reply: Reply
    records: Sequence[str]


class Views:
    """The replies of one process that can be given again.

    A reply is kept with the cached answer that it was made of, and counts against the cache's
    bytes. Under a new policy no reply of the former is found, even where the records are shown in
    the same way: whether there are any may depend on conditions for records of other resources.
    """

    def __init__(self) -> None:
        self._answers: WeakValueDictionary[Hashable, CachedAnswer] = WeakValueDictionary()

    def find(self, admitted: Admitted) -> RememberedReply | None:
        """Returns the reply to an equal call, where what it was made of is still cached."""
        name = _name(admitted)
        answer = self._answers.get(name)
        view: RememberedReply | None = None if answer is None else answer.views.get(name)
        return None if answer is None or view is None or not answer.use() else view

    def keep(self, admitted: Admitted, answer: CachedAnswer | None, reply: Reply) -> None:
        """Keeps a reply that was made of that cached answer alone, if there is room."""
        if answer is None:
            return
        name, call = _name(admitted), admitted.call
        size = OVERHEAD + len(call.query) + len(reply.body) + len(reply.next)
        size += ID * len(call.records)
        if answer.add_view(name, RememberedReply(reply, call.records), size):
            self._answers[name] = answer


def _name(admitted: Admitted) -> Name:
    call, target, operation = admitted.call, admitted.target, admitted.target.operation
    bound = admitted.key.id if operation.paged else ""
    return operation.id, target.id, call.query, call.policy, admitted.redactor, bound
