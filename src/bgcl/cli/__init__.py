"""The command line. A command imports torch and other large packages when it runs, so that `bgcl --help` is fast."""

import sys
from typing import Any, NoReturn

from bgcl.cli import interrupt


def main() -> None:
    """Run a command. Bad input gives one line on standard error and exit code 2, an interruption exit code 130."""
    interrupt.listen()  # first: from here on, also the imports can be interrupted
    try:
        _run()
    except Exception:
        if not interrupt.was_asked():
            raise
        _fail("interrupted.", 130)
    except KeyboardInterrupt:
        _fail("interrupted.", 130)
    finally:
        interrupt.stop()


def _run() -> NoReturn:
    import typer

    from bgcl.cli.commands import app
    from bgcl.errors import BGCLError, InterruptedRunError, LostProcessError, SaidElsewhereError
    from bgcl.processes.joining import start_again

    if hasattr(sys.stdout, "reconfigure"):  # a character that the terminal does not know is escaped, as in errors
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
        if code == 130:  # typer turns a KeyboardInterrupt into this
            raise KeyboardInterrupt
        sys.stdout.flush()  # here, where a full disk and a closed pipe are still reported
    except SaidElsewhereError:
        raise SystemExit(2) from None
    except LostProcessError as error:
        if start_again():  # then the main process says from where all go on
            raise SystemExit(1) from None
        _fail(str(error), 1)
    except BGCLError as error:
        _fail(str(error), 2)
    except typer.TyperException as error:
        _fail(f"{error.format_message()} Try 'bgcl --help'.", 2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output is gone, as with `bgcl ... | head`
        raise SystemExit(1) from None
    except OSError as error:
        _fail(f"Cannot read or write {error.filename or 'a file'}: {error.strerror or error}.", 2)
    except MemoryError as error:
        _fail(f"There is not enough memory ({error or 'no more is free'}). Use a smaller graph or smaller settings.", 2)
    except RuntimeError as error:
        if "allocate memory" not in str(error):  # torch has no type of its own for this
            raise
        _fail("There is not enough memory. Use a smaller graph or smaller settings, such as widths.", 2)
    except InterruptedRunError as interruption:
        _fail(f"interrupted; {interruption}", 130)
    except typer.Abort:
        _fail("interrupted.", 130)
    raise SystemExit(code if isinstance(code, int) else 0)


def _fail(text: str, code: int) -> NoReturn:
    from bgcl.cli.printing import visible
    from bgcl.processes.joining import is_main

    if is_main():  # the others say only what happens to them alone, in `bgcl.processes.joining`
        print(f"bgcl: {visible(' '.join(text.split()))}", file=sys.stderr)
    raise SystemExit(code)


def __getattr__(name: str) -> Any:
    if name == "app":
        from bgcl.cli.commands import app

        return app
    raise AttributeError(f"module 'bgcl.cli' has no attribute '{name}'")
