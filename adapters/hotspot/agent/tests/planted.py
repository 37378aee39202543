# SPDX-License-Identifier: MIT
"""What others plant for the agent: links under names that they can guess, and names with escapes."""
import glob
import os
import subprocess

from harness import LIMIT, Setting, folded, require, run


def planted_links():
    """Others know the name that a file has while it is written. A message has no escapes of theirs."""
    with open("victim", "w", encoding="utf-8") as file:
        file.write("precious")
    plant = "for n in p.folded; do ln -s victim $n.$$.part; done; exec \"$@\""
    for _ in range(2):
        result = subprocess.run(
            ["bash", "-c", plant, "bash", Setting.java, "-Xmx256m",
             f"-agentpath:{Setting.agent}=interval=1ms,file=p.folded", "-cp", Setting.classes,
             "Scenarios", "work", str(Setting.work_ms)],
            capture_output=True, text=True, timeout=LIMIT, check=False)
        require(result.returncode == 0, result.stderr)
        with open("victim", encoding="utf-8") as file:
            require(file.read() == "precious")
        require(folded("p.folded") and not os.path.islink("p.folded"), os.listdir())
    require(not glob.glob("*.part"), os.listdir())
    lines = run("interval=1ms,file=no/\x1b]0;x\x07\u202e.html", "work", "1")
    require(lines[0].startswith("incstack: cannot write no/\\x1b]0;x\\x07\\u{202e}.html: "), lines)
