/* SPDX-License-Identifier: MIT */
/* Buttons and keys, and the first picture. */
const startByModule=!data.diff&&new Set(look.map(l=>l.module).filter(m=>m)).size>1;
byModule=startByModule;
function setMetric(k){
  if(k>=weights.kinds.length||k===metric)return;
  const paths=panes.map(p=>pathOf(p.zoom)),pick=picked();
  metric=k;
  remake(paths,pick);
  refresh();save(true);
}
function setView(to,f){
  view=to;pivot=f;
  makePanes();
  search();graph.scrollTop=0;draw();
  if(view==='sandwich')scrollTo_(chosen);
  save(true);
}
function toggle(){setView(view==='inverted'?'straight':'inverted',REST);}
function sandwich(){
  if(view==='sandwich'&&(!chosen.up||chosen.fn<0))setView('straight',REST);
  else if(chosen.fn>=0)setView('sandwich',chosen.fn);
}
function paint(){byModule=!byModule;hueOf=new Map();legend();render();name();save(false);}
function name(){$('paint').textContent='Colours: '+(data.diff?'difference':byModule?'modules':'kinds');}
/* Forgets the search and the zoom. The weight, the view and the interval stay. */
function reset(){
  pattern='';$('search').value='';
  for(const p of panes)p.zoom=p.root;
  chosen=panes[panes.length-1].root;
  search();graph.scrollTop=0;draw();save(true);
}
function refresh(){buttons();search();legend();draw();name();showInterval();}
function buttons(){
  $('metrics').textContent='';
  weights.kinds.forEach(([title],k)=>{
    const b=document.createElement('button');
    b.textContent=title+' '+amount(weights.total[k][0],k);
    b.title='Key: '+(k+1);
    b.onclick=()=>setMetric(k);
    $('metrics').append(b);
  });
}
function about(){
  const parts=[],meta=data.meta;
  if(meta.time_ns)parts.push(new Date(meta.time_ns/1e6).toISOString().replace('T',' ').slice(0,19)+' UTC');
  if(meta.duration_ns)parts.push((meta.duration_ns/1e9).toFixed(1)+' s');
  if(meta.mode)parts.push('mode '+meta.mode);
  for(const k of ['lost','truncated'])if(meta[k])parts.push(meta[k].toLocaleString('en')+' samples '+k);
  if(meta.pruned)parts.push(meta.pruned.toLocaleString('en')+' small contexts became "[smaller contexts]"');
  if(data.hidden)parts.push(data.hidden.toLocaleString('en')+' contexts are too small for a box of their own');
  return parts.join(', ');
}
const KEYS={ArrowUp:()=>choose(neighbour(-1,0)),ArrowDown:()=>choose(neighbour(1,0)),
  ArrowLeft:()=>choose(neighbour(0,-1)),ArrowRight:()=>choose(neighbour(0,1)),
  Enter:()=>zoomTo(chosen),Escape:reset,'/':()=>$('search').focus(),i:toggle,s:sandwich,c:paint,
  n:()=>step(1),N:()=>step(-1),Home:()=>choose(panes[0].root)};
addEventListener('keydown',event=>{
  if(event.ctrlKey||event.metaKey||event.altKey||event.defaultPrevented)return;
  if(event.target===$('search')){
    if(event.key==='Enter')step(event.shiftKey?-1:1);
    if(event.key==='Escape'){reset();graph.focus({preventScroll:true});}
    return;
  }
  if(event.target.tagName==='BUTTON'&&(event.key==='Enter'||event.key===' '))return;
  const act=/^[1-9]$/.test(event.key)?()=>setMetric(event.key-1):KEYS[event.key];
  if(act){event.preventDefault();act();}
});
$('invert').onclick=toggle;
$('sandwich').onclick=sandwich;
$('paint').onclick=paint;
$('paint').disabled=data.diff;
$('search').oninput=event=>setPattern(event.target.value,isRegex);
$('regex').onclick=()=>setPattern(pattern,!isRegex);
$('next').onclick=()=>step(1);
$('previous').onclick=()=>step(-1);
$('reset').onclick=reset;
graph.addEventListener('scroll',()=>requestAnimationFrame(render));
addEventListener('resize',draw);
addEventListener('popstate',restore);
document.title=$('title').textContent=visible(data.meta.program||'Flame graph')+(data.diff?': difference':'');
$('about').textContent=about();
drawTime();
restore();
