# SPDX-License-Identifier: MIT
"""The own and the total weights of each function in the page of the flame graph, in both views, against those of the
text report, and what a search says, over random profiles. usage: page_sums.py CHROMIUM INCSTACK [PROFILES [SEED]]
"""
import pathlib
import random
import re
import sys
import tempfile

sys.path += [str(pathlib.Path(__file__).parents[1] / "tool")]
import sums  # pylint: disable=wrong-import-position
from flame import observe  # pylint: disable=wrong-import-position

# The straight view is added up here by the boxes that the page has, not by the page's own function.
PROBE = """
seen.text=[...sums()].map(([name,v])=>[name,...v]);
const own_=new Map(),add_=(name,x)=>own_.set(name,(own_.get(name)||0)+x);
const todo_=[straight];let rests_=0;
while(todo_.length){
  const n=todo_.pop();
  if(n.rest)rests_+=n.v[0];
  else if(n.parent)add_(n.name,own(n)[0]);
  if(own(n)[0]<0||(n.rest&&n.kids.size))seen.wrong=n.name;
  todo_.push(...n.kids.values());
}
seen.straight=[...own_];
seen.rests=rests_;
seen.leftOut=[...leftOut].map(([name,v])=>[name,v[0]]);
seen.found=%s.map(name=>[name,find(name)]);
key('Escape');key('i');
seen.inverted=[...root.kids.values()].map(n=>[n.name,n.v[0]]);
seen.whole=root.v[0];
seen.foundInverted=%s.map(name=>[name,find(name)]);
"""


def by_name(rows):
    return {row[0]: tuple(row[1:]) for row in rows}


def total_found(text):
    """The weight that a search for one function has found."""
    return int(re.fullmatch(r"[\d,]+ found, ([\d,]+) \([\d.]+%\)", text)[1].replace(",", ""))


def check(chromium, tool, rng, size, folder):
    source, page = folder / "source.folded", folder / "page.html"
    contexts = sums.random_contexts(rng, size)
    # A search finds every name that contains another one, so all have the same length.
    contexts = {tuple(f"g{int(name[1:]):07}" for name in c): w for c, w in contexts.items()}
    sums.write_folded(contexts, source)
    sums.run(tool, "convert", source, page)
    text = sums.text_sums(tool, source)
    some = rng.sample(sorted(text), min(20, len(text)))
    seen = observe(chromium, page, PROBE % (some, some), folder)
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
    for name, said in seen["found"] + seen["foundInverted"]:
        assert total_found(said) == text[name][1], f"a search for {name} says {said}, not {text[name][1]}"
    return seen["rests"] > 0


def main(chromium, tool, count=6, seed=1):
    cut = 0
    for i in range(int(count)):
        rng = random.Random(f"{seed} {i}")
        with tempfile.TemporaryDirectory() as name:
            try:
                cut += check(chromium, tool, rng, 60000 if i % 25 == 0 else rng.choice([50, 5000]),
                             pathlib.Path(name))
            except AssertionError as error:
                print(f"profile {i} of seed {seed}: {error}")
                return 1
    assert cut > 0, "no page left anything out"
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
