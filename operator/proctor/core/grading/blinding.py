"""Blinding: an answer without the names that tell which arm it came from (grading rule 6).

All names of a suite are taken out of every answer, whichever arm gave it, so that answers lose the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import re2

from proctor.core.digests import digest_bytes

_TOOL = "[tool]"
_BRAND = "[product]"
_SOURCE = "[source]"
_LEAST = 3
"""Characters of a name: shorter ones are words, or parts of words."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PREFIX = r"mcp__[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*__"
"""What clients put before the names of tools."""

_KNOWN_BRANDS = ("anthropic", "chdb", "claude", "clickscope", "clickstack", "hyperdx")
_COMMON = frozenset(
    {"baseline", "candidate", "server", "python", "python3", "node", "npx", "uvx", "bash", "latest", "http", "https"}
    | {"localhost", "main", "stable", "true", "false", "none", "default", "tools", "query", "logs", "traces", "metrics"}
)
"""Parts of commands and names that are everyday words; taken out of an answer they would only make holes."""


@dataclass(frozen=True, slots=True)
class SuiteNames:
    """The names of a suite that could give an arm away.

    Attributes:
        servers: names of servers, in any order.
        tools: names of tools.
        brands: names of programs, images, hosts, and providers' names of models.
        sources: names of connections and sources that servers were given.
    """

    servers: tuple[str, ...]
    tools: frozenset[str]
    brands: frozenset[str]
    sources: frozenset[str]


class Blind:
    """Takes a suite's names out of answers.

    Args:
        names: what to take out.
        salt: the run's uid: a server's letter is the same in all of a run, and tells nothing of its place in the suite.
        kept: what the judge is told anyway. Names in it are the investigated system's, and stay.
    """

    def __init__(self, names: SuiteNames, *, salt: str, kept: str) -> None:
        self._kept = frozenset(re2.split(r"[^\w.-]+", kept.casefold()))
        servers = {name for name in names.servers if self._tells(name)}
        ordered = sorted(servers, key=lambda name: digest_bytes(f"{salt}\n{name}".encode()))
        self._labels: dict[str, str] = {}
        self._add(names.sources, _SOURCE)
        self._add((*names.brands, *_KNOWN_BRANDS), _BRAND)
        for name in names.servers:
            self._add(_parts(name), _BRAND)
        self._tools = {name.casefold() for name in names.tools if len(name) >= _LEAST}
        self._servers = {
            name.casefold(): f"[server {_LETTERS[place % len(_LETTERS)]}]" for place, name in enumerate(ordered)
        }
        self._pattern = self._compile(self._tools)

    def hide(self, answer: str, *, tools: Iterable[str] = ()) -> str:
        """Return an answer without names.

        Args:
            answer: a normalised answer.
            tools: tools that this attempt called beside those of the suite.
        """
        called = {name.casefold() for name in tools if len(name) >= _LEAST} - self._tools
        pattern = self._compile(self._tools | called) if called else self._pattern
        return str(pattern.sub(lambda found: self._label(found[0]), answer))

    def _add(self, names: Iterable[str], label: str) -> None:
        for name in names:
            if self._tells(name):
                self._labels[name.casefold()] = label

    def _tells(self, name: str) -> bool:
        """Whether a name could give an arm away."""
        folded = name.casefold()
        return len(folded) >= _LEAST and folded not in _COMMON and folded not in self._kept

    def _label(self, found: str) -> str:
        folded = found.casefold()
        if folded in self._servers:
            return self._servers[folded]
        return self._labels.get(folded, _TOOL)

    def _compile(self, tools: Iterable[str]) -> re2._Regexp:
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        plain = [*self._servers, *self._labels]
        whole = sorted({*plain, *(name for name in tools if not name.isalpha())}, key=lambda name: (-len(name), name))
        words = sorted(name for name in tools if name.isalpha() and name not in plain)
        forms = [_PREFIX + r"[\w.-]+", *(rf"\b{re2.escape(name)}\b" for name in whole)]
        if words:
            # "the query shows …" is English, "`query`", "query(…)" and "the query tool" are the tool.
            either = "|".join(re2.escape(word) for word in words)
            forms += [rf"`(?:{either})`", rf"\b(?:{either})\(", rf"\b(?:{either}) tool\b", rf"\btool (?:{either})\b"]
        return re2.compile("|".join(forms), options)


def brand_parts(texts: Iterable[str]) -> frozenset[str]:
    """Return the names that commands, packages, images and addresses consist of."""
    return frozenset(name for text in texts for name in (*_parts(text), _bare(text).rpartition("/")[2]) if name)


def digest_names(names: SuiteNames) -> Mapping[str, list[str]]:
    """Return names in the form that goes into a judge's digest."""
    return {
        "servers": sorted(names.servers),
        "tools": sorted(names.tools),
        "brands": sorted(names.brands),
        "sources": sorted(names.sources),
    }


def _parts(text: str) -> list[str]:
    """``mcp-clickhouse`` is called *clickhouse*, ``@acme/mcp`` *acme*: people call products by any part."""
    bare = _bare(text)
    if bare.startswith(("/", ".")):
        bare = bare.rpartition("/")[2]  # folders of this machine name nobody
    parts = [part for part in re2.split(r"[^A-Za-z0-9]+", bare) if len(part) > _LEAST]
    return [part for part in parts if part.casefold() not in _COMMON and not part.isdigit()]


def _bare(text: str) -> str:
    """Return a name without its tag, version or digest."""
    return text.lstrip("@").partition("@")[0].partition(":")[0].rstrip("/")
