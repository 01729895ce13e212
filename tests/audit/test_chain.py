"""Lines are sealed by the HMAC that everybody else computes."""

import hmac
import os
from random import Random

import pytest

from gateway.audit.chain import Head, keyed, seal, unseal
from gateway.audit.secrets import Secret


@pytest.mark.parametrize("length", [1, 31, 32, 63, 64, 65, 200])
def test_what_begins_with_the_key_ends_as_the_librarys_hmac(length: int) -> None:
    random = Random(length)
    key = random.randbytes(length)
    inner, outer = keyed(key)
    for size in (0, 1, 55, 56, 64, 300, 5_000):
        data = random.randbytes(size)
        within, around = inner(), outer()
        within.update(data)
        around.update(within.digest())
        assert around.digest() == hmac.digest(key, data, "sha256")


def test_each_line_follows_the_one_before() -> None:
    secret, other = Secret(os.urandom(32)), Secret(os.urandom(32))
    objects = [b'{"a":%d}' % number for number in range(20)]
    data, end = seal(objects, Head(), secret)
    more, last = seal(objects, end, secret)
    assert seal(objects * 2, Head(), secret) == (data + more, last)
    head = Head()
    for line in (data + more).splitlines(keepends=True):
        assert unseal(line, head, other) is None
        following = unseal(line, head, secret)
        assert following is not None
        head = following
    assert head == last
    assert (end.seq, last.seq) == (20, 40)
