"""The reference of the command line, from the commands' own help."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from proctor.api.generation.reference import HEADER


def render_cli(app: typer.Typer) -> str:
    """Return a page with every command, its arguments and its options."""
    root = typer.main.get_command(app)
    lines = [HEADER, "# Command line\n", f"{root.help}\n"]
    for path, command in _walk(root, ("proctor",)):
        lines += _render_command(path, command)
    return "\n".join(lines)


def _walk(command: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    if isinstance(command, TyperGroup):
        for name in sorted(command.commands):
            yield from _walk(command.commands[name], (*path, name))
    elif isinstance(command, TyperCommand):
        yield path, command


def _render_command(path: tuple[str, ...], command: TyperCommand) -> list[str]:
    arguments = [parameter for parameter in command.params if isinstance(parameter, TyperArgument)]
    options = [parameter for parameter in command.params if isinstance(parameter, TyperOption)]
    rows = [*map(_render_argument, arguments), *(_render_option(each) for each in options if each.name != "help")]
    usage = " ".join([*path, "[OPTIONS]", *(str(argument.name).upper() for argument in arguments)])
    lines = [f"## {' '.join(path)}\n", f"{inspect.cleandoc(command.help or '')}\n", f"`{usage}`\n"]
    if rows:
        lines += ["| parameter | default | meaning |", "|---|---|---|", *rows, ""]
    return lines


def _render_argument(argument: TyperArgument) -> str:
    return _row([str(argument.name).upper()], argument.help, argument.default, required=argument.required)


def _render_option(option: TyperOption) -> str:
    return _row([*option.opts, *option.secondary_opts], option.help, option.default, required=option.required)


def _row(names: Sequence[str], meaning: str | None, default: object, *, required: bool) -> str:
    if required:
        shown = "required"
    elif default is None or default is False or default == "" or callable(default):
        shown = "–"
    else:
        shown = f"`{default}`"
    text = " ".join((meaning or "").split()).replace("|", "\\|")
    return f"| {', '.join(f'`{name}`' for name in names)} | {shown} | {text} |"
