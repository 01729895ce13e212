"""Lines are sealed by the HMAC that everybody else computes."""

import os

from gateway.audit.entries import AuditSecret, ChainHead, seal, unseal


def test_each_line_follows_the_one_before() -> None:
    secret, other = AuditSecret(os.urandom(32)), AuditSecret(os.urandom(32))
    objects = [b'{"a":%d}' % number for number in range(20)]
    data, end = seal(objects, ChainHead(), secret)
    more, last = seal(objects, end, secret)
    assert seal(objects * 2, ChainHead(), secret) == (data + more, last)
    head = ChainHead()
    for line in (data + more).splitlines(keepends=True):
        assert unseal(line, head, other) is None
        following = unseal(line, head, secret)
        assert following is not None
        head = following
    assert head == last
    assert (end.seq, last.seq) == (20, 40)
