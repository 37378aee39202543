# SPDX-License-Identifier: MIT
"""Opens the flame graph in headless Chromium and uses it: totals, search, zoom, the
inverted view, the keyboard, the difference. usage: flame.py CHROMIUM FLAME_PAGE

A script is appended to the page; what it sees comes back in the dumped document.
"""
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--window-size=1200,800"]

PROBE = """<pre id="probe"></pre><script>
const key=k=>dispatchEvent(new KeyboardEvent('keydown',{key:k,bubbles:true}));
const box=name=>[...document.querySelectorAll('.f')].find(e=>e.textContent===name);
const boxes=()=>[...document.querySelectorAll('.f')].map(e=>e.textContent).sort();
const width=name=>Math.round(1000*parseFloat(box(name).style.width)/graph.clientWidth);
const find=text=>{$('search').value=text;$('search').dispatchEvent(new Event('input'));
  return $('found').textContent;};
const seen={};
%s
document.getElementById('probe').textContent=JSON.stringify(seen);
</script>"""

PLAIN = """
seen.title=$('title').textContent;
seen.about=$('about').textContent;
seen.metric=$('metrics').textContent;
seen.boxes=boxes();
seen.widths=[width('main'),width('parse'),width('eval'),width('std::sort')];
seen.found=find('PARSE');
seen.hits=document.querySelectorAll('.f.hit').length;
seen.nothing=find('nowhere');
key('Escape');seen.cleared=$('found').textContent;
box('parse').click();
seen.zoomed=[width('main'),width('parse'),width('std::sort'),$('path').textContent];
$('reset').click();seen.reset=width('parse');
key('ArrowDown');key('ArrowDown');seen.down=$('path').textContent;
key('ArrowRight');seen.right=$('path').textContent;
key('Enter');seen.entered=width('parse');key('Escape');
key('i');seen.pressed=$('invert').getAttribute('aria-pressed');
seen.inverted=root.v[0];
seen.leaves=[...root.kids.values()].map(n=>[n.name,n.v[0]]).sort();
box('parse').click();
seen.callers=[...zoom.kids.values()].map(n=>[n.name,n.v[0]]).sort();
key('i');seen.straight=boxes().length;
seen.colors=new Set([...straight.kids.values()].map(n=>n.kind)).size;
seen.kind=kindOf('std::sort',0)+kindOf('[x]',0)+kindOf('f',3)+kindOf('a.b',5)+kindOf('n::m',5)+kindOf('f',1)+kindOf('f',2)+kindOf('f',4)+kindOf('a.b.C.run',0)+kindOf('do_idle_[k]',0)
  +kindOf('libc.so.6+0x271d0',0);
const rows=[...document.querySelectorAll('#time .row')];
seen.rows=rows.map(r=>r.firstChild.textContent);
seen.thread=rows[0].firstChild.title;
seen.bars=rows.slice(0,2).map(r=>r.lastChild.firstChild.getAttribute('d'));
seen.drawn=rows[0].lastChild.firstChild.getBBox().width;
const area=rows[0].lastChild.getBoundingClientRect();
rows[0].lastChild.onmousemove({clientX:area.left+area.width/5+1,clientY:area.top});
seen.tip=tip.textContent;
"""

DIFF = """
seen.rows=document.querySelectorAll('#time *').length;
seen.title=$('title').textContent;
seen.sides=$('metrics').textContent;
const c=name=>box(name).style.background;
const red=rgb=>{const [r,,b]=rgb.match(/[0-9]+/g).map(Number);return r>b?'more':r<b?'less':'same';};
seen.colors=[red(c('std::sort')),red(c('<\\/script><b>"x"\\\\'))];
box('std::sort').click();seen.path=$('path').textContent;
"""

EXPECTED = {
    "plain": {
        "title": "./prog </title>", "about": "1.5 s, mode patch, 7 samples lost",
        "metric": "samples 100",
        "boxes": ["</script><b>\"x\"\\", "all", "eval", "main", "parse", "parse", "std::sort"],
        "widths": [1000, 400, 600, 300],
        "found": "2 found, 45 (45.0%)", "hits": 2, "nothing": "0 found, 0 (0.0%)", "cleared": "",
        "zoomed": [1000, 1000, 750, "40 (40.0%)  all > main > parse"], "reset": 400,
        "down": "60 (60.0%)  all > main > eval", "right": "40 (40.0%)  all > main > parse",
        "entered": 1000, "pressed": "true", "inverted": 100,
        "leaves": [["</script><b>\"x\"\\", 40], ["eval", 15], ["parse", 15], ["std::sort", 30]],
        "callers": [["eval", 5], ["main", 10]], "straight": 7, "colors": 1,
        "kind": "cppspecialinlinednativecppinterpretedcompiledwrappermanagedkernelnative",
        "rows": ["worker <b> 60", "(no name) 40", ""], "thread": "worker <b>, thread 42",
        "bars": ["M60 1V0.000h1V1z", "M299 1V0.333h1V1z"], "drawn": 1,
        "tip": "worker <b>: 60, 600 ns after the first sample",
    },
    "diff": {
        "title": "Flame graph: difference", "sides": "a 100b 100", "colors": ["less", "more"],
        "rows": 0, "path": "30.0% to 10.0%  all > main > parse > std::sort",
    },
}


def observe(chromium, page, probe, folder):
    text = page.read_text(encoding="utf-8")
    if re.search(r"(src|href)=|@import|fetch\(|https?:", text):
        sys.exit(f"{page.name}: refers to something outside")
    probed = folder / f"probed-{page.name}"
    probed.write_text(text.replace("</body></html>", PROBE % probe + "</body></html>"),
                      encoding="utf-8")
    run = subprocess.run([chromium, *FLAGS, f"--user-data-dir={folder}/{page.stem}", "--dump-dom",
                          probed.as_uri()], capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="probe">(.*?)</pre>', run.stdout, re.DOTALL)
    if not found or not found.group(1):
        sys.exit(f"{page.name}: the page's script did not run\n{run.stderr[-2000:]}")
    return json.loads(html.unescape(found.group(1)))


def main(chromium, writer):
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([writer, name], check=True)
        for page, probe in (("plain", PLAIN), ("diff", DIFF)):
            seen = observe(chromium, folder / f"{page}.html", probe, folder)
            for what, expected in EXPECTED[page].items():
                if seen.get(what) != expected:
                    failed = True
                    print(f"{page}.{what}: {seen.get(what)!r}, not {expected!r}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
