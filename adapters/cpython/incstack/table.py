# SPDX-License-Identifier: MIT
"""The table of the lines that allocate the most."""
import os
from typing import Dict, List

from incstack import Line

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
ORDER = {
    "allocated": lambda line: line.bytes,
    "allocations": lambda line: line.calls,
    "temporary": lambda line: line.temporary,
    "peak": lambda line: line.peak_bytes,
    "live": lambda line: line.live_bytes,
}


def amount(count: float) -> str:
    """A number of bytes, with a unit that leaves at most four digits."""
    unit = 0
    while count >= 1000 and unit + 1 < len(UNITS):
        count /= 1024
        unit += 1
    return f"{count:.0f} {UNITS[unit]}" if unit == 0 or count >= 100 else f"{count:.1f} {UNITS[unit]}"


def place(line: Line) -> str:
    """The function and its line. Text of the program must not control the terminal."""
    text = f"{line.function} ({os.path.basename(line.file)}:{line.line})"
    return "".join(c if c.isprintable() else "?" for c in text)


def text(lines: List[Line], counts: Dict[str, int], kind: str, rows: int) -> str:
    """The sums, and the lines with the most of this kind."""
    share = 100 * counts["temporary"] / counts["calls"] if counts["calls"] else 0
    out = [f"allocated {amount(counts['bytes'])} in {counts['calls']} calls, {share:.0f} % of them temporary; "
           f"at the peak {amount(counts['peak_bytes'])}, still live {amount(counts['live_bytes'])}"]
    if counts["lost"]:
        out.append(f"lost {counts['lost']} samples or blocks, for lack of memory")
    found = sorted(lines, key=ORDER[kind], reverse=True)[:max(rows, 0)]
    if found:
        out.append(f"{'allocated':>10} {'calls':>10} {'temp':>10} {'at peak':>10} {'live':>10}  function")
    for line in found:
        out.append(f"{amount(line.bytes):>10} {line.calls:>10} {line.temporary:>10} "
                   f"{amount(line.peak_bytes):>10} {amount(line.live_bytes):>10}  {place(line)}")
    return "\n".join(out) + "\n"
