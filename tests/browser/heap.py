# SPDX-License-Identifier: MIT
"""Profiles a program whose allocations are known, opens the flame graph that incstack
heap wrote, and uses it. usage: heap.py CHROMIUM INCSTACK TARGET"""
import pathlib
import subprocess
import sys
import tempfile

from flame import observe

STEPS = ["leak=60", "alloc=300", "mixed=10", "big=70000"]
BYTES = 60 * 100 + 300 * 48 + 10 * (64 + 192) + 70000

PROBE = """
const root=panes[0].root;
seen.title=$('title').textContent;
seen.totals=weights.kinds.map((_,k)=>root.v(k));
seen.found=find('leak_blocks');
seen.hits=document.querySelectorAll('.f.hit').length;
seen.none=find('no such function');
key('Escape');
const names=[];for(let n=root;n;n=n.all(1)[0])names.push(n.name);
seen.path=names.slice(-3);
box('alloc_mixed').click();seen.zoomed=width('alloc_mixed');
key('4');seen.leak=path();key('Escape');seen.widest=width('leak_blocks');
"""

EXPECTED = {
    "totals": [BYTES, 381, 76000, 6000],
    "found": "1 function in 1 context, 5.9 KiB (6.5%)", "hits": 1, "none": "0 found, 0 B (0.0%)",
    "path": ["main", "run_step", "alloc_blocks"], "zoomed": 1000,
    "leak": "run_step5.9 KiB (100.0%), self 0 Ball > main > run_step", "widest": 1000,
}


def main(chromium, incstack, target):
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([incstack, "heap", "-o", folder / "trace", "--", target, *STEPS],
                       check=True, capture_output=True)
        (folder / "trace.html").rename(folder / "heap.html")
        seen = observe(chromium, folder / "heap.html", PROBE, folder)
        if not seen["title"].endswith(" ".join(STEPS)):
            failed = True
            print(f"title: {seen['title']}")
        for what, expected in EXPECTED.items():
            if seen.get(what) != expected:
                failed = True
                print(f"{what}: {seen.get(what)!r}, not {expected!r}")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
