/* SPDX-License-Identifier: MIT */
/* What the page shows, as the link has it: weight, view, zoom, search, interval, colours. */
function encode(){
  const at=new URLSearchParams();
  if(interval)at.set('t',interval.row===null?interval.first+'-'+interval.last:interval.first+'-'+interval.last+'-'+interval.row);
  if(metric!==startMetric())at.set('w',metric);
  if(view==='inverted')at.set('v','i');
  if(view==='sandwich')at.set('v','s'+pivot);
  panes.forEach((p,i)=>{if(p.zoom!==p.root)at.set(i?'y':'z',pathOf(p.zoom).join('.'));});
  if(pattern)at.set('q',pattern);
  if(pattern&&isRegex)at.set('x','1');
  if(byModule!==startByModule)at.set('c',byModule?'m':'k');
  return at.toString();
}
const startMetric=()=>data.diff?1:0;
/* Writes the link. A step that "back" should undo is pushed. */
function save(isStep){
  const now=encode();
  if('#'+now===(location.hash||'#'))return;
  try{history[isStep?'pushState':'replaceState'](null,'',now?'#'+now:location.pathname+location.search+'#');}
  catch{/* a browser that allows no link for such a page still shows it */}
}
const list=text=>text?text.split('.').filter(s=>/^(-?\d+|g\d+)$/.test(s)):[];
/* Shows what the link says. What does not exist in this profile is ignored. */
function restore(){
  const at=new URLSearchParams(location.hash.slice(1)),span=/^(\d+)-(\d+)(?:-(\d+))?$/.exec(at.get('t')||'');
  setWeights(span?{first:+span[1],last:+span[2],row:span[3]===undefined?null:+span[3]}:null);
  metric=Math.min(Math.max(0,parseInt(at.get('w')??startMetric(),10)||0),weights.kinds.length-1);
  const way=at.get('v')||'';
  view=way==='i'?'inverted':/^s\d+$/.test(way)&&+way.slice(1)<data.functions.length?'sandwich':'straight';
  pivot=view==='sandwich'?+way.slice(1):REST;
  pattern=at.get('q')||'';
  isRegex=at.get('x')==='1';
  byModule=at.has('c')?at.get('c')==='m':startByModule;
  $('search').value=pattern;
  $('regex').setAttribute('aria-pressed',isRegex);
  remake([list(at.get('z')),list(at.get('y'))]);
  refresh();
}
