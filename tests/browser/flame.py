# SPDX-License-Identifier: MIT
"""Opens the flame graph in headless Chromium and uses it: totals, search, zoom, the
inverted view, the keyboard, the link, the difference. usage: flame.py CHROMIUM FLAME_PAGE [CASE...]

A script is appended to the page; what it sees comes back in the dumped document.
"""
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from flame_cases import CASES

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--virtual-time-budget=60000", "--hide-scrollbars"]

PROBE = """<pre id="probe"></pre><script>
const key=(k,more)=>(document.activeElement||document.body).dispatchEvent(
  new KeyboardEvent('keydown',{key:k,bubbles:true,cancelable:true,...more}));
const box=name=>[...document.querySelectorAll('.f')].find(e=>e.textContent===name);
const boxes=()=>[...document.querySelectorAll('.f')].map(e=>e.textContent).sort();
const width=name=>Math.round(1000*parseFloat(box(name).style.width)/rowsAt.clientWidth);
const find=text=>{$('search').value=text;$('search').dispatchEvent(new Event('input'));
  return $('found').textContent;};
const path=()=>$('path').textContent;
const kids=n=>n.all(metric).map(k=>[k.name,k.v(metric)]);
/* Goes through the history, and waits until the page shows where it came to. */
const atStart=history.length;
const go=by=>new Promise(done=>{
  if(history.length<=atStart)return done(); /* back would leave the page */
  addEventListener('popstate',()=>setTimeout(done),{once:true});
  setTimeout(done,5000);
  history.go(by);
});
const seen={};
(async()=>{
%s
})().catch(error=>{seen.error=String(error)+error.stack;}).then(()=>{
  document.getElementById('probe').textContent=JSON.stringify(seen);
});
</script>"""


def observe(chromium, page, probe, folder, link="", size="1200,800"):
    text = page.read_text(encoding="utf-8")
    shown = re.sub(r"(?s)<script type=.application/json. id=.data.>.*?</script>", "", text)
    if re.search(r"(src|href)=|@import|fetch\(|https?:(?!//www\.w3\.org/2000/svg)", shown):
        sys.exit(f"{page.name}: refers to something outside")
    probed = folder / f"probed-{page.name}"
    probed.write_text(text.replace("</body></html>", PROBE % probe + "</body></html>"),
                      encoding="utf-8")
    run = subprocess.run([chromium, *FLAGS, f"--window-size={size}",
                          f"--user-data-dir={folder}/{page.stem}", "--dump-dom",
                          probed.as_uri() + link], capture_output=True, text=True, timeout=500)
    found = re.search(r'<pre id="probe">(.*?)</pre>', run.stdout, re.DOTALL)
    if not found or not found.group(1):
        sys.exit(f"{page.name}: the page's script did not run\n{run.stderr[-2000:]}")
    return json.loads(html.unescape(found.group(1)))


def main(chromium, writer, *names):
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([writer, name], check=True)
        for case, (page, link, size, probe, expected) in CASES.items():
            if names and case not in names:
                continue
            seen = observe(chromium, folder / f"{page}.html", probe, folder, link, size)
            for what in sorted(expected.keys() | seen.keys()):
                if seen.get(what) != expected.get(what):
                    failed = True
                    print(f"{case}.{what}: {seen.get(what)!r}, not {expected.get(what)!r}")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
