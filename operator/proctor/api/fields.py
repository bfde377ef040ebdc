"""Bounded types that every manifest field is made of: nothing is open-ended, nothing is a float.

Each pattern admits only what may safely reach a command line, a path, a label or an SQL name. The same bounds go
into the CRDs, where they also keep the cost of CEL rules bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    StrictBool,
    StrictInt,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import CoreSchema

from proctor.clock import parse_instant

MAX_ARMS = 50
MAX_CELLS = 2000
"""Servers × models × scenarios × replicates: what one run's status can still summarise within 64 KiB."""


class Closed(BaseModel):
    """A record of the API: camelCase in files, snake_case in Python, immutable, and no unknown fields."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=False,
        ser_json_bytes="base64",
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the record without the titles that pydantic derives from names."""
        described = handler(schema)
        handler.resolve_ref_schema(described).pop("title", None)
        return described

    def to_file(self) -> dict[str, Any]:
        """Return plain JSON values under the file's own names, without what was left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule between fields that a record breaks.

    Attributes:
        path: where, relative to the record, in the file's names; empty for the record itself.
        message: what is wrong.
        fix: what to write instead.
    """

    path: tuple[str | int, ...]
    message: str
    fix: str


def refuse(breaches: Sequence[Breach]) -> None:
    """Refuse a record for all the rules it breaks at once.

    Raises:
        PydanticCustomError: there is at least one breach; ``ctx['breaches']`` has them all.
    """
    if breaches:
        text = "; ".join(f"{breach.message} ({breach.fix})" for breach in breaches)
        # Braces would be read as placeholders of the message template.
        safe = text.replace("{", "(").replace("}", ")")
        raise PydanticCustomError("rule", safe, {"breaches": tuple(breaches)})


def one_of(record: Closed, *names: str, optional: bool = False) -> list[Breach]:
    """Check that exactly one of several alternative fields is given."""
    given = [name for name in names if getattr(record, name) is not None]
    if len(given) == 1 or (optional and not given):
        return []
    aliases = [_alias(record, name) for name in names]
    choice = ", ".join(aliases[:-1]) + f" or {aliases[-1]}"
    if not given:
        return [Breach((), f"one of {choice} is missing", "give exactly one of them")]
    both = " and ".join(_alias(record, name) for name in given)
    return [Breach((), f"{both} exclude each other", f"keep exactly one of {choice}")]


def _alias(record: Closed, name: str) -> str:
    return type(record).model_fields[name].alias or name


def repeated(values: Sequence[str], field: str, what: str) -> list[Breach]:
    """Check that names in a list are unique; each repetition is one breach."""
    seen: dict[str, int] = {}
    breaches = []
    for index, value in enumerate(values):
        if value in seen:
            message = f"{what} {value!r} is already item {seen[value]} of {field}"
            breaches.append(Breach((field, index), message, "rename or remove one of the two"))
        seen.setdefault(value, index)
    return breaches


def _read_decimal(value: object) -> Decimal:
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, str):
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite():
            return number
        raise PydanticCustomError("decimal_text", "not a decimal number")
    raise PydanticCustomError("decimal_text", 'a decimal is written as a string, like "0.05", never as a bare number')


def _write_decimal(value: Decimal) -> str:
    return format(value, "f")


def _decimal(description: str, pattern: str, length: int) -> Any:  # noqa: ANN401 - pydantic metadata of three kinds
    return (
        BeforeValidator(_read_decimal),
        PlainSerializer(_write_decimal, return_type=str),
        WithJsonSchema({"type": "string", "pattern": pattern, "maxLength": length, "description": description}),
    )


SHARE_PATTERN = r"^(0(\.[0-9]{1,6})?|1(\.0{1,6})?)$"
MONEY_PATTERN = r"^[0-9]{1,6}(\.[0-9]{1,6})?$"
VOLUME_PATTERN = r"^[0-9]{1,2}(\.[0-9]{1,6})?$"
SIGNED_PATTERN = r"^-?[0-9]{1,3}(\.[0-9]{1,6})?$"

Share = Annotated[
    Decimal,
    *_decimal("A share between 0 and 1, as a string.", SHARE_PATTERN, 8),
    Field(ge=0, le=1, decimal_places=6),
]
Money = Annotated[
    Decimal,
    *_decimal("US dollars, as a string.", MONEY_PATTERN, 13),
    Field(ge=0, lt=1_000_000, decimal_places=6),
]
Volume = Annotated[
    Decimal,
    *_decimal("Scale of a dataset, as a string; 1 is full scale.", VOLUME_PATTERN, 9),
    Field(gt=0, lt=100, decimal_places=6),
]
Figure = Annotated[
    Decimal,
    *_decimal("A figure computed by Proctor, as a string.", SIGNED_PATTERN, 12),
    Field(gt=-1000, lt=1000, decimal_places=6),
]


def _read_instant(value: object) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if isinstance(value, str):
        try:
            return parse_instant(value)
        except ValueError as error:
            raise PydanticCustomError("instant", "{problem}", {"problem": str(error)}) from error
    raise PydanticCustomError("instant", "an instant is RFC 3339 text with a zone, like 2026-11-30T12:00:00Z")


def _write_instant(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


Instant = Annotated[
    datetime,
    BeforeValidator(_read_instant),
    PlainSerializer(_write_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 40}),
]

NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
TOOL_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$"
ENV_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
HEADER_PATTERN = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
IMAGE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$"
# Never "." or "..", as a key is also a file's name.
KEY_PATTERN = r"^(\.{0,2}[-_a-zA-Z0-9][-._a-zA-Z0-9]*)$"
MODEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@/-]*$"
PATH_PATTERN = r"^/[A-Za-z0-9._~/-]*$"
URL_PATTERN = r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/%-]*)?$"
CRON_PATTERN = r"^[0-9*,/-]+( [0-9A-Za-z*,/-]+){4}$"
# No line breaks and no control characters: a command's argument is shown on one line of a terminal or a pod.
PLAIN_PATTERN = r"^[^\x00-\x1f\x7f]*$"
HEADER_VALUE_PATTERN = r"^[\x20-\x7e]*$"

Name = Annotated[str, StringConstraints(strict=True, pattern=NAME_PATTERN, min_length=1, max_length=50)]
"""DNS label, shorter than 63 so that a run's name and a suffix still fit."""
ObjectName = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$", max_length=253)]
SecretKey = Annotated[str, StringConstraints(strict=True, pattern=KEY_PATTERN, min_length=1, max_length=253)]
ToolName = Annotated[str, StringConstraints(strict=True, pattern=TOOL_PATTERN, min_length=1, max_length=128)]
EnvName = Annotated[str, StringConstraints(strict=True, pattern=ENV_PATTERN, min_length=1, max_length=128)]
HeaderName = Annotated[str, StringConstraints(strict=True, pattern=HEADER_PATTERN, min_length=1, max_length=128)]
HeaderValue = Annotated[str, StringConstraints(strict=True, pattern=HEADER_VALUE_PATTERN, max_length=1024)]
Image = Annotated[str, StringConstraints(strict=True, pattern=IMAGE_PATTERN, min_length=1, max_length=512)]
ModelId = Annotated[str, StringConstraints(strict=True, pattern=MODEL_PATTERN, min_length=1, max_length=128)]
UrlPath = Annotated[str, StringConstraints(strict=True, pattern=PATH_PATTERN, min_length=1, max_length=256)]
Url = Annotated[str, StringConstraints(strict=True, pattern=URL_PATTERN, min_length=8, max_length=512)]
Cron = Annotated[str, StringConstraints(strict=True, pattern=CRON_PATTERN, min_length=9, max_length=100)]
EnvValue = Annotated[str, StringConstraints(strict=True, pattern=PLAIN_PATTERN, max_length=4096)]
Argument = Annotated[str, StringConstraints(strict=True, pattern=PLAIN_PATTERN, max_length=1024)]
Command = Annotated[tuple[Argument, ...], Field(min_length=1, max_length=64)]
Word = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9]*$", max_length=64)]
"""A machine word, like a condition's reason."""
Line = Annotated[str, StringConstraints(strict=True, max_length=256)]
Digest = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{16,64}$", max_length=64)]
Quantity = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$", max_length=20)
]
LabelKey = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$", max_length=317)
]
LabelValue = Annotated[
    str, StringConstraints(strict=True, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)
]

Flag = StrictBool
Count = Annotated[StrictInt, Field(ge=0, le=1_000_000_000)]
Percent = Annotated[StrictInt, Field(ge=0, le=100)]


class SecretKeyRef(Closed):
    """One key of a Secret: how every credential is named, so that none is ever written into a manifest."""

    name: ObjectName = Field(description="Name of the Secret.")
    key: SecretKey = Field(description="Key in the Secret.")


class NameRef(Closed):
    """Another object of the same namespace."""

    name: ObjectName = Field(description="Name of the object.")
