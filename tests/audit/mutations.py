"""What somebody may do to the day files: each changes what they say, at random."""

import json
from collections.abc import Callable, Mapping
from random import Random
from uuid import uuid4

from gateway.audit.entries import AuditSecret, ChainHead, seal

Files = dict[str, bytes]
Mutation = Callable[[Files, Random, AuditSecret], None]


def edit(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    data = bytearray(files[name])
    at = random.randrange(len(data))
    data[at] = (data[at] + random.randrange(1, 256)) % 256
    files[name] = bytes(data)


def edit_a_member(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice([name for name in files if b'"level":"FULL"' in files[name]])
    lines = files[name].splitlines(keepends=True)
    at = random.choice([n for n, line in enumerate(lines) if b'"level":"FULL"' in line])
    lines[at] = lines[at].replace(b'"level":"FULL"', b'"level":"BASIC"')
    files[name] = b"".join(lines)


def delete_lines(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    lines = files[name].splitlines(keepends=True)
    first = random.randrange(len(lines))
    del lines[first : first + random.randrange(1, 4)]
    files[name] = b"".join(lines)


def delete_file(files: Files, random: Random, _: AuditSecret) -> None:
    del files[random.choice(list(files))]


def delete_chain(files: Files, random: Random, _: AuditSecret) -> None:
    chain = chain_of(random.choice(list(files)))
    for name in [name for name in files if chain_of(name) == chain]:
        del files[name]


def swap(files: Files, random: Random, _: AuditSecret) -> None:
    places = [(name, n) for name in files for n in range(files[name].count(b"\n"))]
    (one, first), (two, second) = random.sample(places, 2)
    lines = {name: files[name].splitlines(keepends=True) for name in (one, two)}
    lines[one][first], lines[two][second] = lines[two][second], lines[one][first]
    for name, each in lines.items():
        files[name] = b"".join(each)


def swap_files(files: Files, random: Random, _: AuditSecret) -> None:
    one, two = random.sample(list(files), 2)
    files[one], files[two] = files[two], files[one]


def truncate(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    files[name] = files[name][: random.randrange(len(files[name]))]


def truncate_by_lines(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    lines = files[name].splitlines(keepends=True)
    files[name] = b"".join(lines[: random.randrange(len(lines))])


def insert_again(files: Files, random: Random, _: AuditSecret) -> None:
    name, source = random.choice(list(files)), random.choice(list(files))
    lines = files[name].splitlines(keepends=True)
    new = random.choice(files[source].splitlines(keepends=True))
    lines.insert(random.randrange(len(lines) + 1), new)
    files[name] = b"".join(lines)


def forge(files: Files, random: Random, secret: AuditSecret) -> None:
    """The chain from some line on, sealed anew with a key of one's own."""
    name = random.choice(list(files))
    lines = files[name].splitlines(keepends=True)
    at = random.randrange(1, len(lines))
    before = json.loads(lines[at - 1])
    rest = [json.loads(line) for line in lines[at:]]
    texts = []
    for each in rest:
        del each["seq"], each["mac"]
        texts.append(json.dumps({**each, "level": "BASIC"}).encode())
    data, _ = seal(texts, ChainHead(before["seq"], bytes.fromhex(before["mac"])), secret)
    files[name] = b"".join(lines[:at]) + data


def rename(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    day, rest = name[:10], name[10:]
    other = random.choice([f"2026-11-{number:02}" for number in range(1, 29)])
    while other == day or f"{other}{rest}" in files:
        other = f"2026-10-{random.randrange(1, 29):02}"
    files[f"{other}{rest}"] = files.pop(name)


def rename_oddly(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    files[name.replace(".jsonl", random.choice([".jsonl.1", ".x.jsonl", ".jsonl~"]))] = files.pop(
        name
    )


def replace_chain(files: Files, random: Random, _: AuditSecret) -> None:
    """One chain's files under the name of another."""
    chains = sorted({chain_of(name) for name in files})
    one, two = random.sample(chains, 2)
    taken = {name: data for name, data in files.items() if chain_of(name) == two}
    for name in [name for name in files if chain_of(name) == one]:
        del files[name]
    for name, data in taken.items():
        files[name.replace(two, one)] = data


def invent_chain(files: Files, random: Random, secret: AuditSecret) -> None:
    """One more, as if a process had written it."""
    name = random.choice(list(files))
    files[name.replace(chain_of(name), str(uuid4()))] = files[name]


def append(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    files[name] += b"x" + random.randbytes(random.randrange(1, 300))


def empty_lines(files: Files, random: Random, _: AuditSecret) -> None:
    name = random.choice(list(files))
    lines = files[name].splitlines(keepends=True)
    lines.insert(random.randrange(len(lines) + 1), random.choice([b"\n", b" \n", b"{}\n", b"\r\n"]))
    files[name] = b"".join(lines)


def chain_of(name: str) -> str:
    return name[11:47]


MUTATIONS: Mapping[str, Mutation] = {
    each.__name__: each
    for each in (
        edit, edit_a_member, delete_lines, delete_file, delete_chain, swap, swap_files, truncate,
        truncate_by_lines, insert_again, forge, rename, rename_oddly, replace_chain, invent_chain,
        append, empty_lines,
    )
}  # fmt: skip
