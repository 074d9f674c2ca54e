"""All commands, and what every one of them refuses: an empty value, and an option that is given twice."""

import contextlib
from collections import Counter
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from bgcl.cli import data, demo, embed, evaluate, inspect, predict, rank, report, reproduce, train
from bgcl.cli.many import sharing
from bgcl.cli.sign_of_life import SignOfLife
from bgcl.errors import BGCLError

app = typer.Typer(
    help="Bayesian graph contrastive learning: node embeddings that know what they do not know.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_MAY_BE_EMPTY = ("weight", "missing_label")  # an empty value means that there are none


class Command(TyperCommand):
    """A command that uses every value it is given, or refuses it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in self.params:
            given = values.get(option.name)
            for value in given if isinstance(given, list | tuple) else [given]:
                if isinstance(value, str) and not value.strip() and option.name not in _MAY_BE_EMPTY:
                    raise BGCLError(f"The value of {_called(option)} is empty. Give one, or leave out the option.")
        for option, times in Counter(order).items():
            if times > 1 and option.param_type_name == "option" and not option.multiple:
                raise BGCLError(f"{_called(option)} is given {times} times, and only one can count. Give it once.")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        silent = ctx.params.get("quiet") or ctx.params.get("json")
        with contextlib.ExitStack() as stack:
            if "processes" in ctx.params and ctx.info_name != "train":  # which does more, and so does it itself
                stack.enter_context(sharing(ctx.params["processes"]))
            stack.enter_context(SignOfLife(str(ctx.info_name), wanted=not silent))
            return super().invoke(ctx)


def _called(option: Any) -> str:
    """What the user calls an option or an argument."""
    return str(option.opts[0]) if option.param_type_name == "option" else str(option.metavar or option.name)


def _version(value: bool) -> None:
    if value:
        from bgcl import __version__  # reads the metadata of the package, which takes time

        print(f"bgcl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


for command in (
    demo.demo, inspect.inspect, train.train, embed.embed, evaluate.evaluate, predict.predict, rank.rank, report.report,
    reproduce.reproduce,
):  # fmt: skip
    app.command(cls=Command)(command)
data_app = typer.Typer(
    help="List, download and verify data sets, and make and pack large graphs.", no_args_is_help=True
)
data_app.command("list", cls=Command)(data.data_list)
data_app.command("get", cls=Command)(data.data_get)
data_app.command("verify", cls=Command)(data.data_verify)
data_app.command("make", cls=Command)(data.data_make)
data_app.command("pack", cls=Command)(data.data_pack)
app.add_typer(data_app, name="data")
