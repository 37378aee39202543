# SPDX-License-Identifier: MIT
"""The own and the total weights of each function in the page of the flame graph, in both views, against those of the
text report, and what a search says, over random profiles. usage: page_sums.py CHROMIUM INCSTACK FLAME_PAGE [PROFILES [SEED]]

Some pages may have fewer boxes than the profile has contexts, so they leave out the smallest.
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path += [str(pathlib.Path(__file__).parents[1] / "tool")]
import sums  # pylint: disable=wrong-import-position
from flame import observe  # pylint: disable=wrong-import-position

# The straight view is added up here by the boxes that it draws, not by the page's own sums.
PROBE = """
const all=weights.functions(0);
seen.text=data.functions.map((name,f)=>[name,all.own[f],all.total[f]]);
const own_=new Map(),todo_=[panes[0].root];let rests_=0;
while(todo_.length){
  const n=todo_.pop();
  if(n.rest)rests_+=n.v(0);
  else if(n.up)own_.set(n.name,(own_.get(n.name)||0)+n.self(0));
  const below=n.all(0).reduce((sum,k)=>sum+k.v(0),0);
  if((!n.rest&&n.self(0)+below!==n.v(0))||(n.rest&&below))seen.wrong=n.name;
  todo_.push(...n.all(0));
}
seen.straight=[...own_];
seen.rests=rests_;
seen.leftOut=data.leftOut.map(([f,own])=>[data.functions[f],own]);
seen.found=%s.map(name=>[name,find(name)]);
key('Escape');key('i');
seen.inverted=kids(panes[0].root);
seen.whole=panes[0].root.v(0);
seen.callers=%s.map(name=>{
  const f=data.functions.indexOf(name),callees=calleesOf(f,weights);
  return [name,callees?callees.v(0):0,callees?callersOf(f,weights).v(0):0];
});
"""


def by_name(rows):
    return {row[0]: tuple(row[1:]) for row in rows}


def total_found(text):
    """The weight that a search for one function has found."""
    return int(re.fullmatch(r"(?:[\d,]+ functions? in [\d,]+ contexts?|0 found), ([\d,]+) \([\d.]+%\)",
                            text)[1].replace(",", ""))


def check(chromium, tool, writer, rng, size, most, folder):
    source, page = folder / "source.folded", folder / "page.html"
    contexts = sums.random_contexts(rng, size)
    # A search finds every name that contains another one, so all have the same length.
    contexts = {tuple(f"g{int(name[1:]):07}" for name in c): w for c, w in contexts.items()}
    sums.write_folded(contexts, source)
    if most:
        subprocess.run([writer, str(most), source, page], check=True)
    else:
        sums.run(tool, "convert", source, page)
    text = sums.text_sums(tool, source)
    some = rng.sample(sorted(text), min(20, len(text)))
    seen = observe(chromium, page, PROBE % (some, some), folder)
    assert "error" not in seen, seen["error"]
    left = by_name(seen["leftOut"])
    straight = {name: v[0] + left.get(name, (0,))[0] for name, v in by_name(seen["straight"]).items()}
    straight |= {name: v[0] for name, v in left.items() if name not in straight}
    own = {name: v[0] for name, v in text.items()}
    assert "wrong" not in seen, seen["wrong"]
    assert straight == own, "own weights of the straight view"
    assert sum(v[0] for v in left.values()) == seen["rests"], "the boxes for what is left out"
    assert by_name(seen["text"]) == text, "sums of the page"
    inverted = {name: v[0] for name, v in by_name(seen["inverted"]).items()}
    assert inverted == {name: v for name, v in own.items() if v}, "own weights of the inverted view"
    assert seen["whole"] == sum(own.values()), "the whole of the inverted view"
    for name, said in seen["found"]:
        assert total_found(said) == text[name][1], f"a search for {name} says {said}, not {text[name][1]}"
    for name, callees, callers in seen["callers"]:
        assert callees == callers, f"{name}: {callees} in its callees, {callers} in its callers"
        assert left or callees == text[name][1], f"{name}: {callees}, not {text[name][1]}"
    return seen["rests"] > 0


def main(chromium, tool, writer, count=6, seed=1):
    cut = 0
    for i in range(int(count)):
        rng = random.Random(f"{seed} {i}")
        size, most = (60000, 5000 if i % 2 else 0) if i % 25 < 2 else (rng.choice([50, 5000]), 0)
        with tempfile.TemporaryDirectory() as name:
            try:
                cut += check(chromium, tool, writer, rng, size, most, pathlib.Path(name))
            except AssertionError as error:
                print(f"profile {i} of seed {seed}: {error}")
                return 1
    assert cut > 0, "no page left anything out"
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
