"""Start several processes of a command on this machine with torch's elastic launcher, which is what torchrun uses.

If one process of a training dies, all are stopped and started again. They continue at the last saved epoch. Bad input
does not start them again: it would be as bad the next time. Work that saves nothing on its way is not started again.
"""

import logging
import os
from collections.abc import Callable

from bgcl.errors import BGCLError

RESTARTS = 20  # before a training is given up
FAILED, REFUSED, INTERRUPTED = 1, 2, 130  # exit codes


def launch(run: Callable[[list[str]], int], arguments: list[str], processes: int, *, again: bool = True) -> int:
    """Run a command in several processes, and return its exit code.

    Args:
        run: runs a command in a process and returns 0 or `REFUSED`. Any other end counts as the death of the process.
        arguments: the arguments of the command.
        processes: how many processes.
        again: whether all start again if one dies.

    Raises:
        BGCLError: a process was killed, and they do not start again, or did so too often.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in list(logging.root.manager.loggerDict):  # each module of torch sets a level of its own
        if name.startswith(("torch.distributed", "torch.multiprocessing")):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    os.environ.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // processes, 1)))
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=processes, run_id=f"bgcl-{os.getpid()}", rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=RESTARTS if again else 0, monitor_interval=0.1, shutdown_timeout=5,
    )  # fmt: skip
    try:
        codes = elastic_launch(config, run)(arguments)
    except SignalException:  # the main process has said what was saved
        return INTERRUPTED
    except ChildFailedError as failed:
        if not again:
            signals = [-failure.exitcode for failure in failed.failures.values() if failure.exitcode < 0]
            if not signals:  # it has said why
                return FAILED
            raise BGCLError(
                f"A process was killed by signal {signals[0]}, perhaps because memory was used up, so all have "
                "stopped. Start again, perhaps with fewer processes."
            ) from failed
        raise BGCLError(
            f"Processes of this training died {RESTARTS + 1} times, so it was given up. See what they have printed "
            "before, and continue with --resume."
        ) from failed
    return max(int(code) for code in codes.values())
