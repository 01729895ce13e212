"""YAML 1.2 core scalars, instead of YAML 1.1's `no`, `010` and `8:30`."""

import re
from typing import Any

from yaml.nodes import ScalarNode

_NULL = re.compile(r"(~|null|Null|NULL|)").fullmatch
_TRUE = re.compile(r"(true|True|TRUE)").fullmatch
_FALSE = re.compile(r"(false|False|FALSE)").fullmatch
_INT = re.compile(r"[-+]?[0-9]{1,18}").fullmatch
is_number = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?").fullmatch


def scalar(node: ScalarNode) -> Any:
    """What a scalar stands for, by the core schema of YAML 1.2."""
    text: str = node.value
    if node.style:  # quoted, or a block: always text
        return text
    if _NULL(text):
        return None
    if _TRUE(text) or _FALSE(text):
        return bool(_TRUE(text))
    if _INT(text):
        return int(text)
    return float(text) if is_number(text) else text
