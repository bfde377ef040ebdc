"""MCP servers of a suite: what is being judged, and how it is started or reached."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StrictInt, model_validator

from proctor.api.fields import (
    Breach,
    Closed,
    Command,
    EnvName,
    EnvValue,
    HeaderName,
    HeaderValue,
    Image,
    Name,
    ObjectName,
    SecretKeyRef,
    ToolName,
    Url,
    UrlPath,
    one_of,
    refuse,
    repeated,
)


class DatasetField(StrEnum):
    """What a server may learn about the dataset it is pointed at."""

    HOST = "host"
    PORT = "port"
    USER = "user"
    PASSWORD = "password"  # noqa: S105 - the name of a field, not a password
    DATABASE = "database"


class EnvVar(Closed):
    """One environment variable of a server: a plain value, a key of a Secret, or a field of the dataset."""

    name: EnvName = Field(description="Name of the variable.")
    value: EnvValue | None = Field(default=None, description="A plain value; nothing in it is expanded.")
    secret_key_ref: SecretKeyRef | None = Field(default=None, description="A key of a Secret.")
    dataset: DatasetField | None = Field(default=None, description="A field of the dataset that the cell investigates.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(one_of(self, "value", "secret_key_ref", "dataset"))
        return self


class Header(Closed):
    """One HTTP header that is sent to a server: a plain value or a key of a Secret."""

    name: HeaderName = Field(description="Name of the header.")
    value: HeaderValue | None = Field(default=None, description="A plain value.")
    secret_key_ref: SecretKeyRef | None = Field(default=None, description="A key of a Secret.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        breaches = one_of(self, "value", "secret_key_ref")
        if self.name.lower() in PROTOCOL_HEADERS:
            breaches.append(Breach(("name",), f"header {self.name!r} belongs to the protocol", "remove it"))
        refuse(breaches)
        return self


PROTOCOL_HEADERS = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "accept", "upgrade", "te"}
    | {"mcp-session-id", "mcp-protocol-version", "last-event-id"}
)
"""What the gateway's own HTTP client sets; a second value would break the framing or the session."""


class StdioTransport(Closed):
    """A server that speaks MCP on its standard input and output; one fresh process per cell."""

    command: Command = Field(description="Program and arguments; started without a shell.")
    image: Image | None = Field(
        default=None, description="Image that holds the command. Required on a cluster; ignored on one machine."
    )


class HttpTransport(Closed):
    """A server that speaks MCP over streamable HTTP: one that Proctor starts, or one that runs elsewhere."""

    url: Url | None = Field(
        default=None, description="Address of a server that runs elsewhere; egress to its host only."
    )
    image: Image | None = Field(default=None, description="Image to start. Ignored on one machine.")
    command: Command | None = Field(
        default=None, description="Program and arguments. Needed on one machine, optional with an image."
    )
    port: Annotated[StrictInt, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Port that the started server listens on; with image or command."
    )
    path: UrlPath = Field(default="/mcp", description="Path of the MCP endpoint of a started server.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        breaches = []
        started = [name for name in ("image", "command", "port") if getattr(self, name) is not None]
        if self.url is not None and started:
            breaches.append(Breach(("url",), f"url excludes {', '.join(started)}", "keep the url, or remove it"))
        if self.url is None and self.port is None:
            breaches.append(Breach((), "neither url nor port is given", "give url, or port with image or command"))
        refuse(breaches)
        return self


class ImageFrom(Closed):
    """Take the image digest that a Deployment of the same namespace runs; a change starts a run."""

    deployment: ObjectName = Field(description="Name of the Deployment.")
    container: Name = Field(description="Name of its container.")


class SqlTool(Closed):
    """The tool that runs SQL, so that the controls can play through this server."""

    name: ToolName = Field(description="Name of the tool.")
    argument: ToolName = Field(description="Name of its argument that takes the SQL text.")


class Provision(Closed):
    """A program that prepares accounts, connections or sources of a server, once per server and dataset."""

    image: Image | None = Field(default=None, description="Image that holds the command.")
    command: Command = Field(
        description="Program and arguments; gets `env`, PROCTOR_DATASET_* and PROCTOR_SERVER_URL, and prints "
        "{url, headers} as its last line."
    )


ToolList = Annotated[tuple[ToolName, ...], Field(max_length=256)]


class Server(Closed):
    """An MCP server under test."""

    name: Name = Field(description="Name of the server in this suite.")
    stdio: StdioTransport | None = Field(default=None, description="Spoken to on standard input and output.")
    http: HttpTransport | None = Field(default=None, description="Spoken to over streamable HTTP.")
    image_from: ImageFrom | None = Field(default=None, description="Where to take the image from, instead of `image`.")
    env: Annotated[tuple[EnvVar, ...], Field(max_length=64)] = Field(
        default=(), description="Environment of the server and of `provision`; nothing else of the host's is passed."
    )
    headers: Annotated[tuple[Header, ...], Field(max_length=32)] = Field(
        default=(), description="HTTP headers of every request to the server."
    )
    provision: Provision | None = Field(default=None, description="Prepares the server for a dataset.")
    allowed_tools: ToolList | None = Field(default=None, description="The only tools that agents may see and call.")
    denied_tools: ToolList | None = Field(default=None, description="Tools that agents may neither see nor call.")
    error_field: ToolName | None = Field(
        default=None, description="A JSON object with this key counts as a tool error, even if `isError` is false."
    )
    sql_tool: SqlTool | None = Field(default=None, description="Lets the control cells play through this server.")

    @property
    def transport(self) -> StdioTransport | HttpTransport:
        """The one transport that is given."""
        if self.stdio is not None:
            return self.stdio
        if self.http is not None:
            return self.http
        raise AssertionError("validation admits no server without a transport")

    @property
    def image(self) -> str | None:
        """The image that is named, whichever the transport."""
        return self.transport.image

    def admits(self, tool: str) -> bool:
        """Say whether agents may see and call a tool."""
        if self.allowed_tools is not None:
            return tool in self.allowed_tools
        return tool not in (self.denied_tools or ())

    @model_validator(mode="after")
    def _check(self) -> Self:
        breaches = one_of(self, "stdio", "http") + one_of(self, "allowed_tools", "denied_tools")
        breaches += repeated([variable.name for variable in self.env], "env", "variable")
        breaches += repeated([header.name.lower() for header in self.headers], "headers", "header")
        if self.headers and self.http is None:
            breaches.append(Breach(("headers",), "headers need http", "remove them, or use http"))
        if self.provision is not None and self.http is None:
            breaches.append(Breach(("provision",), "provision needs http", "remove it, or use http"))
        if self.stdio is not None or self.http is not None:
            breaches += self._check_image()
        if self.sql_tool is not None and not self.admits(self.sql_tool.name):
            message = f"tool {self.sql_tool.name!r} is not among the tools that agents may call"
            breaches.append(Breach(("sqlTool", "name"), message, "allow it, or name another"))
        refuse(breaches)
        return self

    def _check_image(self) -> list[Breach]:
        breaches = []
        if self.image_from is not None and self.image is not None:
            breaches.append(Breach(("imageFrom",), "imageFrom and image exclude each other", "keep one"))
        if self.http is not None and self.http.url is not None:
            if self.image_from is not None:
                breaches.append(Breach(("imageFrom",), "a server at a url has no image here", "remove it"))
            if self.env and self.provision is None:
                breaches.append(Breach(("env",), "a server at a url is not started here", "remove env"))
        elif self.http is not None and not (self.http.image or self.http.command or self.image_from):
            breaches.append(Breach(("http",), "nothing to start", "give image, imageFrom or command"))
        return breaches
