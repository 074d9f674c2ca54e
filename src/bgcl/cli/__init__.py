"""The command line. Nothing heavy is imported before a command needs it, so that `bgcl --help` is quick."""

import signal
import sys
from typing import Annotated

import typer

import bgcl.cli.data as data
import bgcl.cli.inspect as inspection
import bgcl.cli.predictions as predictions
import bgcl.cli.report as report
import bgcl.cli.reproduce as reproduce
import bgcl.cli.training as training
from bgcl import __version__
from bgcl.errors import BGCLError, InterruptedRunError

app = typer.Typer(
    help="Bayesian graph contrastive learning: node embeddings that know what they do not know.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run a command; bad input ends in one line on standard error and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except BGCLError as error:
        _fail(str(error), 2)
    except typer.TyperException as error:
        _fail(f"{error.format_message()} Try 'bgcl --help'.", 2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; so do we, without a word
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
        print(f"bgcl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


app.command()(training.demo)
app.command()(inspection.inspect)
app.command()(training.train)
app.command()(predictions.embed)
app.command()(predictions.evaluate)
app.command()(predictions.predict)
app.command()(predictions.rank)
app.command()(reproduce.reproduce)
app.command()(report.report)
app.add_typer(data.app, name="data")
