"""The command line. A command imports torch and other large packages when it runs, so that `bgcl --help` is fast."""

import signal
import sys
from typing import Annotated

import typer

from bgcl.cli import data, demo, embed, evaluate, inspect, predict, rank, report, reproduce, train
from bgcl.errors import BGCLError, InterruptedRunError

app = typer.Typer(
    help="Bayesian graph contrastive learning: node embeddings that know what they do not know.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run a command. Bad input gives one line on standard error and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except BGCLError as error:
        _fail(str(error), 2)
    except typer.TyperException as error:
        _fail(f"{error.format_message()} Try 'bgcl --help'.", 2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output is gone, as with `bgcl ... | head`
        raise SystemExit(1) from None
    except OSError as error:
        _fail(f"Cannot read or write {error.filename or 'a file'}: {error.strerror or error}.", 2)
    except InterruptedRunError as interruption:
        _fail(f"interrupted; {interruption}", 130)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted.", 130)
    raise SystemExit(code if isinstance(code, int) else 0)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _fail(text: str, code: int) -> None:
    print(f"bgcl: {' '.join(text.split())}", file=sys.stderr)
    raise SystemExit(code)


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
    app.command()(command)
app.add_typer(data.app, name="data")
