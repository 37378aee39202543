# SPDX-License-Identifier: MIT
"""Where a Python program allocates memory: every allocation, with its whole stack.

    import incstack

    with incstack.heap("out.html"):
        work()

The suffix of the file chooses the format: .html (a flame graph), .pb.gz (pprof), .folded,
.speedscope.json, .firefox.json. `python3 -m incstack heap program.py` does the same for a whole program.

`start`, `stop` and `snapshot` are for programs that decide themselves when to record. One recording is in progress
at a time, of the whole process with all its threads.
"""
import contextlib
import os
import sys
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

try:
    from . import _incstack
except ImportError as error:
    if getattr(error, "name", None) != "incstack._incstack" and "_incstack" not in str(error):
        raise
    raise ImportError(
        f"incstack is not built for Python {sys.version_info.major}.{sys.version_info.minor}: "
        "install it in a virtual environment of this Python with pip"
    ) from error

__version__: str = _incstack.version
__all__ = ["Line", "counts", "heap", "lines", "snapshot", "stack", "start", "stop", "write"]

FORMATS = ".html, .pb.gz, .folded, .speedscope.json, .firefox.json"
_launcher = ""  # the file whose frames are not part of the program
_KINDS = ("allocated", "allocations", "temporary", "peak", "live")


class Line(NamedTuple):
    """What a line of the source has allocated itself, without what it calls."""

    function: str
    file: str
    line: int
    bytes: int
    calls: int
    temporary: int  # freed before the thread's next allocation
    peak_bytes: int  # live when the most memory was
    live_bytes: int
    live_calls: int


def _format_of(path: str) -> int:
    found = _incstack.format_of(path)
    if not 1 <= found <= 5:
        raise ValueError(f"{path!r} has no suffix of a profile: use one of {FORMATS}")
    return found


def _is_traced() -> bool:
    module = sys.modules.get("_tracemalloc")
    return bool(module and module.is_tracing())


def start(*, check: bool = False) -> None:
    """Begins to record all allocations of the process. What was recorded before is forgotten.

    With `check`, each stack is compared with a walk over all frames; counts() has the result.
    """
    _incstack.start(check, _is_traced())


def stop() -> Dict[str, int]:
    """Ends the recording and returns its sums. Its profile can be written until the next start."""
    if not _incstack.stop():
        import warnings

        warnings.warn("others have removed incstack's functions from Python's allocators, so a part of the "
                      "allocations is missing", RuntimeWarning, stacklevel=2)
    return counts()


def counts() -> Dict[str, int]:
    """The sums of the recording that is in progress, or of the last one."""
    return _incstack.counts()


def lines() -> List[Line]:
    """The sums of each line that has allocated, in no order."""
    return [Line(*line) for line in _incstack.lines()]


def stack() -> List[Tuple[str, str, int]]:
    """The stack of the caller as the recording sees it: function, file, line; the youngest first."""
    return _incstack.stack()[1:]


def write(path: "os.PathLike[str] | str", *, kind: str = "allocated") -> None:
    """Writes the profile of the recording to a file. A .folded file has one kind of weight: `kind`, which is
    allocated (bytes), allocations, temporary, peak (bytes live at the peak) or live (bytes still live).
    """
    name = os.fspath(path)
    if kind not in _KINDS:
        raise ValueError(f"there is no kind {kind!r}: use one of {', '.join(_KINDS)}")
    number = _format_of(name)
    program = " ".join(sys.argv) or "python3"
    with open(name, "wb") as file:
        _incstack.write(file.fileno(), number, _KINDS.index(kind), _launcher,
                        program.encode("utf-8", "replace").decode("utf-8", "replace").replace("\0", " "))


def snapshot(path: "os.PathLike[str] | str", *, kind: str = "allocated") -> None:
    """Writes what was recorded until now. The recording goes on."""
    if not _incstack.is_on():
        raise RuntimeError("nothing is recorded: call incstack.start() first")
    write(path, kind=kind)


@contextlib.contextmanager
def heap(path: "Optional[os.PathLike[str] | str]" = None, *, kind: str = "allocated",
         check: bool = False) -> Iterator[None]:
    """Records what its block allocates, and writes the profile at the end of the block, also after an
    exception. A child that forks inside the block writes nothing.
    """
    if path is not None:
        _format_of(os.fspath(path))
    start(check=check)
    process = os.getpid()
    try:
        yield
    finally:
        stop()
        if path is not None and os.getpid() == process:
            write(path, kind=kind)
