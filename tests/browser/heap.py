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
const totals=()=>root.v.slice();
seen.title=$('title').textContent;
seen.totals=totals();
seen.found=find('leak_blocks');
seen.hits=document.querySelectorAll('.f.hit').length;
seen.none=find('no such function');
key('Escape');
const path=[];for(let n=straight;n;n=[...n.kids.values()].sort((a,b)=>b.v[1]-a.v[1])[0])path.push(n.name);
seen.path=path.slice(-3);
box('alloc_mixed').click();seen.zoomed=width('alloc_mixed');
key('4');seen.leak=$('path').textContent;seen.widest=width('leak_blocks');
"""

EXPECTED = {
    "totals": [BYTES, 381, 76000, 6000],
    "found": "1 found, 5.9 KiB (6.5%)", "hits": 1, "none": "0 found, 0 B (0.0%)",
    "path": ["main", "run_step", "alloc_blocks"], "zoomed": 1000,
    "leak": "5.9 KiB (100.0%)  all", "widest": 1000,
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
