"""Lets docstrings be read as Markdown: a line that begins with # is a marked remark there, not a heading."""

import re
from typing import Any

import griffe


class Remarks(griffe.Extension):
    """`# DEVIATION(D5): …` becomes a paragraph."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = re.sub(r"^# ", "", obj.docstring.value, flags=re.MULTILINE)
