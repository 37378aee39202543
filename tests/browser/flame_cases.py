# SPDX-License-Identifier: MIT
"""What flame.py does with each page, and what it must see then: page, link, size of the window, script, seen."""

WINDOW = "1200,800"
CASES = {}


def case(name, page, probe, expected, link="", size=WINDOW):
    CASES[name] = (page, link, size, probe, expected)


case("plain", "plain", """
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
seen.zoomed=[width('main'),width('parse'),width('std::sort'),path()];
$('reset').click();seen.reset=width('parse');
key('ArrowDown');key('ArrowDown');seen.down=path();
key('ArrowRight');seen.right=path();
key('ArrowUp');seen.up=path();
key('ArrowDown');key('Enter');seen.entered=width('eval');key('Escape');
key('i');seen.pressed=$('invert').getAttribute('aria-pressed');
seen.inverted=panes[0].root.v(0);
seen.leaves=kids(panes[0].root);
box('parse').click();
seen.callers=kids(panes[0].zoom);
key('i');seen.straight=boxes().length;
seen.injected=document.querySelectorAll('#rows b,#path b b').length;
""", {
    "title": "./prog </title>", "about": "1.5 s, mode patch, 7 samples lost",
    "metric": "samples 100",
    "boxes": ["</script><b>\"x\"\\", "all", "eval", "main", "parse", "parse", "std::sort"],
    "widths": [1000, 400, 600, 300],
    "found": "1 function in 2 contexts, 45 (45.0%)", "hits": 2, "nothing": "0 found, 0 (0.0%)", "cleared": "",
    "zoomed": [1000, 1000, 750, "parse40 (40.0%), self 10all > main > parse"], "reset": 400,
    "down": "eval60 (60.0%), self 15all > main > eval",
    "right": "parse40 (40.0%), self 10all > main > parse",
    "up": "main100 (100.0%), self 0all > main",
    "entered": 1000, "pressed": "true", "inverted": 100,
    "leaves": [["</script><b>\"x\"\\", 40], ["std::sort", 30], ["parse", 15], ["eval", 15]],
    "callers": [["main", 10], ["eval", 5]], "straight": 7, "injected": 0,
})

case("aria", "plain", """
seen.roles=[graph.getAttribute('role'),box('parse').getAttribute('role'),box('parse').getAttribute('aria-level')];
seen.label=box('parse').getAttribute('aria-label');
key('ArrowDown');
seen.active=document.getElementById(graph.getAttribute('aria-activedescendant')).textContent;
seen.selected=box('main').getAttribute('aria-selected');
seen.unnamed=[...document.querySelectorAll('button,input,svg')].filter(e=>
  !e.textContent.trim()&&!e.getAttribute('aria-label')).length;
""", {
    "roles": ["tree", "treeitem", "3"], "label": "parse, 40 (40.0%)", "active": "main", "selected": "true",
    "unnamed": 0,
})

case("kinds", "plain", """
seen.kinds=[['std::sort',0],['[x]',0],['f',3],['a.b',5],['n::m',5],['f',1],['f',2],['f',4],['a.b.C.run',0],
  ['do_idle_[k]',0],['libc.so.6+0x271d0',0],['f.constprop.0',0],['f.isra.0.cold',0],['f.part.0',0],['f.llvm.123',0],
  ['f.lto_priv.0.lto_priv.1',0],['key=value',6]].map(k=>kindOf(...k));
seen.legend=$('legend').textContent;
""", {
    "kinds": ["cpp", "special", "inlined", "native", "cpp", "interpreted", "compiled", "wrapper", "managed", "kernel",
              "native", "native", "native", "native", "native", "native", "label"],
    "legend": "Kinds, by their own weight:native 70.0%C++ 30.0%",
})

case("regex", "plain", """
seen.regex=find('^e');$('regex').click();
seen.found=$('found').textContent;
seen.hits=[...document.querySelectorAll('.f.hit')].map(e=>e.textContent);
seen.wrong=find('(');
seen.either=find('^(parse|eval)$');
""", {
    "regex": "0 found, 0 (0.0%)", "found": "1 function in 1 context, 60 (60.0%)", "hits": ["eval"],
    "wrong": "not a regular expression", "either": "2 functions in 3 contexts, 100 (100.0%)",
})

case("next", "plain", """
find('parse');
key('n');seen.first=[$('found').textContent,path()];
key('n');seen.second=[$('found').textContent.slice(0,7),path()];
key('n');seen.again=path();
key('N');seen.back=path();
$('search').focus();key('Enter');seen.entered=path();
key('Enter',{shiftKey:true});seen.shifted=path();
graph.focus();key('i');key('n');seen.inverted=path();
""", {
    "first": ["1 of 2: 1 function in 2 contexts, 45 (45.0%)", "parse40 (40.0%), self 10all > main > parse"],
    "second": ["2 of 2:", "parse5 (5.0%), self 5all > main > eval > parse"],
    "again": "parse40 (40.0%), self 10all > main > parse",
    "back": "parse5 (5.0%), self 5all > main > eval > parse",
    "entered": "parse40 (40.0%), self 10all > main > parse",
    "shifted": "parse5 (5.0%), self 5all > main > eval > parse",
    "inverted": "parse15 (15.0%)all < parse",
})

case("link", "plain", """
box('parse').click();seen.zoomed=location.hash;
key('i');seen.inverted=location.hash;
find('sort');seen.found=location.hash;
await go(-1);seen.back=[view,path(),pattern];
await go(-1);seen.start=[view,path(),width('parse')];
await go(2);seen.forth=[view,pattern,$('search').value,$('found').textContent];
""", {
    "zoomed": "#z=0.1", "inverted": "#v=i", "found": "#v=i&q=sort",
    "back": ["straight", "parse40 (40.0%), self 10all > main > parse", ""],
    "start": ["straight", "all100 (100.0%), self 0", 400],
    "forth": ["inverted", "sort", "sort", "1 function in 1 context, 30 (30.0%)"],
})

case("linked", "lines", """
seen.shown=[metric,view,$('search').value,$('found').textContent];
seen.zoom=panes[0].zoom.name;
seen.colors=$('paint').textContent;
key('1');seen.kept=[metric,panes[0].zoom.name,width('work')];
key('2');seen.again=[metric,panes[0].zoom.name];
""", {
    "shown": [1, "straight", "^g", "1 function in 1 context, 2.0 KiB (98.0%)"], "zoom": "work",
    "colors": "Colours: kinds", "kept": [0, "work", 1000], "again": [1, "work"],
}, link="#w=1&z=0.1&q=%5Eg&x=1")

case("hostile-link", "plain", """
seen.shown=[metric,view,panes[0].zoom.name,$('search').value,interval];
seen.injected=document.querySelectorAll('img').length;
""", {
    "shown": [0, "straight", "main", "<img src=x>", None], "injected": 0,
}, link="#w=99&v=s77&z=0.99.x.g5&q=%3Cimg%20src%3Dx%3E&t=5-&c=q&y=.....")

case("lines", "lines", """
box('work').onmousemove({clientX:10,clientY:200});
seen.tip=tip.querySelector('small').textContent;
box('grow').click();seen.path=path();
seen.inlined=find('kind:inlined');
seen.file=find('file:work.c');
key('Escape');
seen.legend=[...$('legend').children].map(e=>e.textContent);
find('hot');key('n');seen.hot=path();
const text=[...whole.functions(0).own].map((v,f)=>[data.functions[f],v,whole.functions(0).total[f]]);
seen.sums=text;
""", {
    "tip": "/src/work.c:15 and other lines",
    "path": "grow7.8 KiB (99.1%), self 7.8 KiB/src/grow.h:3 (inlined)all > main > work > grow",
    "inlined": "1 function in 1 context, 7.8 KiB (99.1%)",
    "file": "2 functions in 2 contexts, 7.9 KiB (100.0%)",
    "legend": ["Kinds, by their own weight:", "inlined 99.1%", "native 0.9%"],
    "hot": "hot.constprop.040 B (0.5%), self 40 B/src/work.c:40all > main > hot.constprop.0",
    "sums": [["main", 0, 8070], ["work", 30, 8030], ["grow", 8000, 8000], ["hot.constprop.0", 40, 40]],
})

case("sandwich", "recursion", """
box('g').click();key('s');
seen.view=[view,data.functions[pivot],panes[1].root.v(0)];
seen.callers=kids(panes[0].root);
seen.callees=kids(panes[1].root);
seen.deeper=kids(panes[0].root.all(0)[0]);
seen.rows=rows.map(r=>r.map(i=>i.n.name).join(' '));
seen.link=location.hash;
box('main').click();seen.zoomed=panes[0].zoom.name+' '+panes[1].zoom.name;
await go(-1);seen.back=[view,panes[0].zoom.name];
key('ArrowUp');seen.up=path();
key('ArrowUp');seen.upper=path();
key('ArrowDown');key('ArrowDown');key('ArrowDown');seen.down=path();
""", {
    "view": ["sandwich", "g", 11], "callers": [["f", 7], ["main", 4]], "callees": [["f", 11]],
    "deeper": [["main", 7]], "rows": ["main", "f main", "g", "f", "g"], "link": "#v=s2",
    "zoomed": "main g", "back": ["sandwich", "g"],
    "up": "f7 (50.0%)g < f", "upper": "main7 (50.0%)g < f < main",
    "down": "f11 (78.6%)g > f",
})

case("recursion", "recursion", """
seen.found=find('f');
key('Escape');
seen.sums=[...whole.functions(0).total].map((v,f)=>[data.functions[f],whole.functions(0).own[f],v]);
""", {
    "found": "1 function in 3 contexts, 14 (100.0%)",
    "sums": [["main", 0, 14], ["f", 5, 14], ["g", 7, 11], ["h", 2, 2]],
})

case("esc", "deep", """
const top=()=>graph.getBoundingClientRect().top>=document.querySelector('header').getBoundingClientRect().bottom-0.5;
const first=()=>box('all').getBoundingClientRect().top-graph.getBoundingClientRect().top>=0;
$('search').focus();key('Escape');
seen.escaped=[scrollY,graph.scrollTop,top(),first(),document.activeElement.id];
graph.blur();graph.focus();
seen.focused=[scrollY,graph.scrollTop,top(),first()];
for(let i=0;i<102;i++)key('ArrowDown');
seen.deepest=path().slice(0,6);
const at=document.querySelector('.f.sel').getBoundingClientRect();
seen.visible=at.top>=graph.getBoundingClientRect().top&&at.bottom<=innerHeight;
key('Escape');seen.again=[scrollY,graph.scrollTop,first()];
seen.overflow=document.documentElement.scrollWidth-innerWidth;
""", {
    "escaped": [0, 0, True, True, "graph"], "focused": [0, 0, True, True], "deepest": "deep99", "visible": True,
    "again": [0, 0, True], "overflow": 0,
}, size="1200,500")

case("many", "wide", """
seen.self=panes[0].root.all(0)[0].all(0)[0].self(0);
seen.boxes=boxes().slice(0,3);
box('5,000 smaller ones').click();
seen.opened=[boxes().length>100,boxes().some(t=>/smaller ones$/.test(t)&&!/^5,000/.test(t)),location.hash];
const rest=[...document.querySelectorAll('.many')].pop();rest.click();
seen.deeper=/^#z=0\\.1\\.g[0-9]+$/.test(location.hash)&&location.hash!=='#z=0.1.g0';
await go(-1);seen.back=location.hash;
seen.found=find('handler_4999');
seen.hit=document.querySelectorAll('.many.hit').length>0;
key('n');seen.next=path();
key('i');seen.leaf=kids(panes[0].root)[0];
seen.inverted=panes[0].root.all(0).reduce((s,n)=>s+n.v(0),0)===panes[0].root.v(0);
seen.dispatch=panes[0].root.kid(data.functions.indexOf('dispatch'))===undefined;
""", {
    "self": 0, "boxes": ["5,000 smaller ones", "all", "dispatch"], "opened": [True, True, "#z=0.1.g0"],
    "deeper": True, "back": "#z=0.1.g0", "found": "1 function in 1 context, 1,007 (0.0%)", "hit": True,
    "next": "handler_49991,007 (0.0%), self 1,007all > main > dispatch > handler_4999",
    "leaf": ["handler_0012", 1012], "inverted": True, "dispatch": True,
})

for width, height in ((390, 844), (1280, 800), (3840, 2160)):
    case(f"size-{width}", "plain", """
seen.overflow=document.documentElement.scrollWidth-innerWidth;
seen.graph=graph.clientHeight>=120&&box('main').getBoundingClientRect().right<=innerWidth;
seen.reached=[...document.querySelectorAll('button,input')].every(e=>e.hidden||
  e.getBoundingClientRect().right<=innerWidth&&e.getBoundingClientRect().left>=0);
""", {"overflow": 0, "graph": True, "reached": True}, size=f"{width},{height}")

case("time", "plain", """
const lines=[...document.querySelectorAll('#time .row')];
seen.rows=lines.map(r=>r.firstChild.textContent);
seen.thread=lines[0].firstChild.title;
seen.bars=lines.map(r=>r.lastChild.firstChild.getAttribute('d'));
const area=lines[0].lastChild.getBoundingClientRect(),at=part=>({clientX:area.left+area.width*part+1,clientY:area.top,
  pointerId:1,bubbles:true});
lines[0].lastChild.onmousemove(at(0.2));
seen.tip=tip.textContent;
lines[0].lastChild.dispatchEvent(new PointerEvent('pointerdown',at(0.1)));
lines[0].lastChild.dispatchEvent(new PointerEvent('pointermove',at(0.9)));
lines[0].lastChild.dispatchEvent(new PointerEvent('pointerup',at(0.9)));
seen.selected=[interval.first,interval.last,interval.row,weights.total[0][0],$('metrics').textContent];
seen.link=location.hash;
$('all').click();seen.whole=[interval,weights.total[0][0]];
await go(-1);seen.back=weights.total[0][0];
lines[1].firstChild.click();seen.second=weights.total[0][0];
lines[1].firstChild.click();seen.all=weights.total[0][0];
charts[0].svg.focus();key('ArrowRight');
seen.arrow=[interval.first,interval.last];
for(let i=0;i<70;i++)key('ArrowRight',{shiftKey:true});
seen.longer=[interval.first,interval.last,weights.total[0][0]];
key('ArrowRight');seen.moved=[interval.first,interval.last];
key('Escape');seen.escaped=interval;
select({first:0,last:moments-1,row:null},false);
seen.everything=[weights.total[0][0],whole.functions(0).own.join()!==''];
""", {
    "rows": ["worker <b> 60", "(no name) 40"], "thread": "worker <b>, thread 42",
    "bars": ["M60 1V0.000h1V1z", "M299 1V0.333h1V1z"], "tip": "worker <b>: 60, 600 ns after the first sample",
    "selected": [30, 270, 0, 60, "samples in the interval 60"], "link": "#t=30-270-0",
    "whole": [None, 100], "back": 60, "second": 40, "all": 100, "arrow": [0, 0], "longer": [0, 70, 60],
    "moved": [1, 71], "escaped": None, "everything": [100, True],
})

DIFFERENCE = """
seen.rows=document.querySelectorAll('#time *').length;
seen.title=$('title').textContent;
seen.sides=$('metrics').textContent;
const c=name=>box(name).style.background;
const red=rgb=>{const [r,,b]=rgb.match(/[0-9]+/g).map(Number);return r>b?'more':r<b?'less':'same';};
seen.colors=[red(c('std::sort')),red(c('</'+'script><b>"x"\\\\'))];
box('std::sort').click();seen.path=path();
"""
for page, path in (("diff", "30 to 10, -20"), ("shares", "30.0% to 10.0%")):
    case("difference_" + page, page, DIFFERENCE, {
        "title": "Flame graph: difference", "sides": "a 100b 100", "colors": ["less", "more"],
        "rows": 0, "path": f"std::sort{path}all > main > parse > std::sort",
    })
