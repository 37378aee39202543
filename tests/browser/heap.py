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
const kind=name=>data.kinds.findIndex(([n])=>n===name),exit=kind('live at exit');
seen.totals=['allocated','allocations','live at peak','live at exit'].map(name=>root.v(kind(name)));
seen.found=find('leak_blocks');
seen.hits=document.querySelectorAll('.f.hit').length;
seen.none=find('no such function');
key('Escape');
const names=[];for(let n=root;n;n=n.all(1)[0])names.push(n.name);
seen.path=names.slice(-3);
box('alloc_mixed').click();seen.zoomed=width('alloc_mixed');
key(String(exit+1));seen.leak=path().replace(/^(.*Ki?B \\(.*?\\)).*> main/,'$1 main');key('Escape');seen.widest=width('leak_blocks');
const same=(a,b)=>a.every((v,i)=>v===b[i]);
const all=weightsOf({first:0,last:moments-1,row:null});
seen.curve=[same(all.own[0],whole.own[kind('allocated')]),same(all.own[1],whole.own[exit])];
seen.heights=[Math.max(...curve.highest),curve.peak];
seen.chart=[document.querySelectorAll('svg.curve .peak').length,$('time').textContent.includes('peak 74.2 KiB')];
/* The parts of the time have, together, what the whole has. */
const half=Math.floor(moments/2),one=weightsOf({first:0,last:half,row:null}),two=weightsOf({first:half+1,last:moments-1,row:null});
seen.parts=[one.own[0].every((v,b)=>v+two.own[0][b]===whole.own[kind('allocated')][b]),same(two.own[1],whole.own[exit])];
seen.negative=Array.from({length:moments},(_,i)=>weightsOf({first:i,last:i,row:null})).some(w=>w.own[1].some(v=>v<0));
seen.above=Array.from({length:moments},(_,i)=>weightsOf({first:0,last:i,row:null}).total[1][0]>curve.highest[i]).includes(true);
$('peak').click();seen.peak=[data.kinds[metric][0],weights.total[metric][0]];
setMetric(exit);
select({first:0,last:half,row:null},true);
seen.metrics=[...$('metrics').children].map(e=>e.textContent.replace(/ [0-9.]+ .*/,''));
seen.kept=[metric,panes[0].zoom.name];
"""

EXPECTED = {
    "totals": [BYTES, 381, 76000, 6000],
    "found": "1 function in 1 context, 5.9 KiB (6.5%)", "hits": 1, "none": "0 found, 0 B (0.0%)",
    "path": ["main", "run_step", "alloc_blocks"], "zoomed": 1000,
    "leak": "run_step5.9 KiB (100.0%) main > run_step", "widest": 1000,
    "peak": ["live at peak", 76000], "curve": [True, True], "heights": [76000, 76000], "chart": [1, True], "parts": [True, True],
    "negative": False, "above": False, "metrics": ["allocated in the interval", "live at its end"], "kept": [1, "all"],
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
