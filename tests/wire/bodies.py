"""Texts that are JSON, texts that are not, and those of which nobody can be sure.

Each is the body of a booking: `DRAFT` is a whole one, and `WORD` stands in every text of a value,
so that an answer that repeats it tells what was sent.
"""

WORD = "Zwergspitz"
SOME = "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"
REST = f'"patientId":"{SOME}","vetId":"{SOME}","scheduledAt":"2099-01-01T09:00:00Z"'
DRAFT = f'{{"clientId":"{SOME}",{REST}}}'


def with_reason(written: str | bytes) -> bytes:
    """A draft with a reason that is written so, quotes included."""
    text = written.encode() if isinstance(written, str) else written
    return DRAFT[:-1].encode() + b',"reason":' + text + b"}"


def with_urgent(written: str) -> bytes:
    return with_member(f'"isUrgent":{written}')


def with_member(written: str) -> bytes:
    return f'{DRAFT[:-1]},"reason":"{WORD}",{written}}}'.encode()


MUST_ACCEPT = {
    "plain": DRAFT.encode(),
    "blanks": DRAFT.replace(":", " \t\r\n: ").replace(",", " \n, ").replace(
        "2099-01-01T09 \t\r\n: 00 \t\r\n: 00Z", "2099-01-01T09:00:00Z").encode(),
    "blanks-around": b" \r\n\t" + DRAFT.encode() + b"\n\n ",
    "other-order": f'{{{REST},"clientId":"{SOME}"}}'.encode(),
    "name-escaped": DRAFT.replace("clientId", "\\u0063lient\\u0049d").encode(),
    "reason-empty": with_reason('""'),
    "reason-line": with_reason('"a\\nb"'),
    "reason-escapes": with_reason('"\\"\\\\\\/"'),
    "reason-pair": with_reason('"\\uD83D\\uDE00"'),
    "reason-utf-8": with_reason('"\U0001f600 é \u2764\ufe0f \u05d0 \u3042"'),
    "reason-noncharacter": with_reason('"\\uFFFF"'),
    "reason-longest": with_reason('"' + "\U0001f600" * 500 + '"'),
    "urgent": with_urgent("true"),
    "not-urgent": with_urgent("false"),
}  # fmt: skip

MUST_REJECT = {
    "empty": b"",
    "blank": b" ",
    "null": b"null",
    "true": b"true",
    "number": b"1",
    "text": f'"{WORD}"'.encode(),
    "array": b"[]",
    "array-of-drafts": f"[{DRAFT}]".encode(),
    "object-empty": b"{}",
    "comma-last": with_member("").replace(b',}', b",}"),
    "comma-twice": with_member(',"isUrgent":true'),
    "comma-first": b"{," + DRAFT[1:].encode(),
    "comma-missing": DRAFT.replace(",", " ", 1).encode(),
    "colon-missing": DRAFT.replace(":", " ", 1).encode(),
    "colon-twice": DRAFT.replace(":", "::", 1).encode(),
    "brace-missing": DRAFT[:-1].encode(),
    "brace-twice": DRAFT.encode() + b"}",
    "bracket-closes": DRAFT[:-1].encode() + b"]",
    "two-objects": DRAFT.encode() * 2,
    "trailing-word": DRAFT.encode() + WORD.encode(),
    "trailing-comment": DRAFT.encode() + b"//" + WORD.encode(),
    "trailing-nul": DRAFT.encode() + b"\0",
    "comment-inside": with_member(f'/* {WORD} */"isUrgent":true'),
    "comment-hash": b"#" + WORD.encode() + b"\n" + DRAFT.encode(),
    "name-unquoted": DRAFT.replace('"clientId"', "clientId").encode(),
    "name-single-quotes": DRAFT.replace('"clientId"', "'clientId'").encode(),
    "name-number": with_member("1:true"),
    "name-unknown": with_member('"isUrgnet":true'),
    "name-prototype": with_member('"__proto__":{}'),
    "name-other-case": DRAFT.replace("clientId", "clientID").encode(),
    "urgent-nan": with_urgent("NaN"),
    "urgent-infinity": with_urgent("Infinity"),
    "urgent-minus-infinity": with_urgent("-Infinity"),
    "urgent-0": with_urgent("0"),
    "urgent-1": with_urgent("1"),
    "urgent-text": with_urgent('"true"'),
    "urgent-null": with_urgent("null"),
    "urgent-upper": with_urgent("True"),
    "urgent-cut": with_urgent("tru"),
    "urgent-array": with_urgent("[true]"),
    "name-twice": with_member(f'"clientId":"{SOME}"'),
    "name-twice-differs": with_member(f'"clientId":"{WORD}"'),
    "name-twice-escaped": with_member(f'"client\\u0049d":"{WORD}"'),
    "name-twice-unknown": with_member('"isUrgnet":1,"isUrgnet":2'),
    "name-twice-inside": with_member('"isUrgent":{"a":1,"a":2}'),
    "number-plus": with_urgent("+1"),
    "number-zeros": with_urgent("012"),
    "number-point-first": with_urgent(".5"),
    "number-point-last": with_urgent("1."),
    "number-exponent-empty": with_urgent("1e"),
    "number-hex": with_urgent("0x1F"),
    "number-octal": with_urgent("0o17"),
    "number-fullwidth": with_urgent("\uff11"),
    "number-beyond": with_urgent("1e400"),
    "number-minus-beyond": with_urgent("-1e99999999999"),
    "number-long": with_urgent("9" * 20_000),
    "number-fraction-long": with_urgent("0." + "9" * 20_000),
    "reason-number": with_reason("1"),
    "reason-null": with_reason("null"),
    "reason-array": with_reason(f'["{WORD}"]'),
    "reason-object": with_reason(f'{{"{WORD}":1}}'),
    "reason-single-quotes": with_reason(f"'{WORD}'"),
    "reason-unfinished": with_reason(f'"{WORD}')[:-1],
    "reason-too-long": with_reason('"' + WORD * 51 + '"'),
    "reason-nul": with_reason(f'"{WORD}\\u0000"'),
    "reason-control": with_reason(f'"{WORD}\\u0007"'),
    "reason-escape": with_reason(f'"{WORD}\\u001b[31m"'),
    "reason-c1": with_reason(f'"{WORD}\\u009b"'),
    "reason-direction": with_reason(f'"{WORD}\\u202e"'),
    "reason-isolate": with_reason(f'"{WORD}\u2067"'),
    "reason-mark": with_reason(f'"{WORD}\u200f"'),
    "reason-line-separator": with_reason(f'"{WORD}\u2028"'),
    "reason-paragraph-separator": with_reason(f'"{WORD}\u2029"'),
    "reason-zero-width-space": with_reason(f'"{WORD}\u200b"'),
    "reason-joined-emoji": with_reason('"\U0001f468\u200d\U0001f469"'),
    "reason-byte-order-mark": with_reason(f'"{WORD}\ufeff"'),
    "reason-tag": with_reason(f'"{WORD}\U000e0041"'),
    "reason-tab-raw": with_reason(f'"{WORD}\t"'),
    "reason-line-raw": with_reason(f'"{WORD}\n"'),
    "reason-nul-raw": with_reason(f'"{WORD}\0"'),
    "escape-x": with_reason(f'"{WORD}\\x41"'),
    "escape-quote": with_reason(f"\"{WORD}\\'\""),
    "escape-cut": with_reason(f'"{WORD}\\u12"'),
    "escape-braces": with_reason(f'"{WORD}\\u{{1F600}}"'),
    "escape-upper": with_reason(f'"{WORD}\\U0041"'),
    "escape-octal": with_reason(f'"{WORD}\\101"'),
    "surrogate-high": with_reason(f'"{WORD}\\uD800"'),
    "surrogate-low": with_reason(f'"{WORD}\\uDC00"'),
    "surrogates-swapped": with_reason(f'"{WORD}\\uDE00\\uD83D"'),
    "utf-8-overlong": with_reason(b'"' + WORD.encode() + b'\xc0\xaf"'),
    "utf-8-surrogate": with_reason(b'"' + WORD.encode() + b'\xed\xa0\x80"'),
    "utf-8-continuation": with_reason(b'"' + WORD.encode() + b'\x80"'),
    "utf-8-cut": with_reason(b'"' + WORD.encode() + b'\xe0\xa0"'),
    "utf-8-beyond": with_reason(b'"' + WORD.encode() + b'\xf4\x90\x80\x80"'),
    "utf-8-ff": with_reason(b'"' + WORD.encode() + b'\xff"'),
    "latin-1": with_reason('"é"'.encode("latin-1")),
    "utf-16": DRAFT.encode("utf-16"),
    "utf-16-le": DRAFT.encode("utf-16-le"),
    "utf-32": DRAFT.encode("utf-32"),
    "byte-order-mark": b"\xef\xbb\xbf" + DRAFT.encode(),
    "blank-other": "\u00a0".encode() + DRAFT.encode(),
    "blank-form-feed": b"\x0c" + DRAFT.encode(),
    "arrays-deep": b"[" * 60_000,
    "arrays-deep-closed": b"[" * 30_000 + b"]" * 30_000,
    "objects-deep": b'{"a":' * 12_000,
    "reason-deep": with_reason("[" * 20_000 + "]" * 20_000),
    "members-many": with_member(",".join(f'"{n}":0' for n in range(5_000))),
    "name-long": with_member(f'"{"n" * 50_000}":0'),
    "id-text": DRAFT.replace(SOME, WORD, 1).encode(),
    "id-upper": DRAFT.replace(SOME, SOME.upper(), 1).encode(),
    "id-braces": DRAFT.replace(SOME, f"{{{SOME}}}", 1).encode(),
    "id-number": DRAFT.replace(f'"{SOME}"', "7", 1).encode(),
    "id-line": DRAFT.replace(SOME, f"{SOME}\\n", 1).encode(),
    "time-without-zone": DRAFT.replace("00Z", "00").encode(),
    "time-week": DRAFT.replace("2099-01-01T", "2099-W01-1T").encode(),
    "time-number": DRAFT.replace('"2099-01-01T09:00:00Z"', "4070941200").encode(),
    "time-passed": DRAFT.replace("2099", "1999").encode(),
    "time-beyond": DRAFT.replace("2099-01-01T09:00:00Z", "9999-12-31T23:59:59-14:00").encode(),
}  # fmt: skip

# One reader takes the first of two, another the last, a third none: it is never a fault of ours.
EITHER = {
    "delete": with_reason(f'"{WORD}\\u007f"'),
    "time-leap": DRAFT.replace("09:00:00Z", "23:59:60Z").encode(),
    "time-lower": DRAFT.replace("T09:00:00Z", "t09:00:00z").encode(),
}
