# SPDX-License-Identifier: MIT
"""Debian packages: which are installed, in which version, and how missing ones are installed."""
import os
import subprocess


def _query(names):
    """The installed versions by package."""
    result = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n",
                             *names], capture_output=True, text=True, check=False)
    rows = [line.split() for line in result.stdout.splitlines()]
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed"}


def version(name):
    return _query([name]).get(name, "") if name else ""


def missing(names):
    names = sorted(set(names))
    return sorted(set(names) - set(_query(names))) if names else []


def install(names):
    """Installs what is missing. Returns an error text, or "". The caller asks for one entry at
    a time, so that a package that cannot be installed does not prevent the others."""
    wanted = missing(names)
    if not wanted:
        return ""
    if os.geteuid() != 0:
        return f"not root, and these packages are missing: {' '.join(wanted)}"
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *wanted]
    # Services that start by themselves would occupy ports and use processor time.
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1")
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode == 0:
        return ""
    lines = (result.stdout + result.stderr).strip().splitlines()
    return lines[-1] if lines else "apt-get failed"
