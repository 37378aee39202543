# SPDX-License-Identifier: MIT
"""How the tests, check and measure run a program under jemalloc with the adapter."""
import os
import pathlib
import subprocess

SKIPPED = 77


class Failed(Exception):
    """What is wrong, for the user."""


def find_jemalloc():
    """Debian's libjemalloc2, or None."""
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"):
        path = pathlib.Path(folder) / "libjemalloc.so.2"
        if path.exists():
            return str(path)
    return None


def environment(preload, conf="prof:true,lg_prof_sample:10", **others):
    """The environment of a program that jemalloc profiles, if `conf` says so."""
    result = {name: value for name, value in os.environ.items()
              if name not in ("LD_PRELOAD", "MALLOC_CONF") and not name.startswith("INCSTACK_")}
    result["LD_PRELOAD"] = " ".join(str(one) for one in preload)
    if conf:
        result["MALLOC_CONF"] = conf
    return {**result, **others}


def run(command, env, status=0, **others):
    result = subprocess.run([str(one) for one in command], env=env, capture_output=True, text=True,
                            errors="replace", stdin=subprocess.DEVNULL, check=False, **others)
    if result.returncode != status:
        raise Failed(f"{' '.join(map(str, command))} ended with {result.returncode}:\n"
                     f"{result.stdout[-1000:]}{result.stderr[-3000:]}")
    return result


def counts(path):
    """The sums of what the processes under compare.so have written."""
    total = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        for name, value in (one.split("=") for one in line.split()):
            total[name] = total.get(name, 0) + int(value)
    return total
