/* SPDX-License-Identifier: MIT */
/* Lays the trees out in rows, and makes elements for the rows that are in the window. */
const ROW=20,NARROWEST=1.2,OPENED=9,NARROW_REST=60;
const graph=$('graph'),rowsAt=$('rows'),tip=$('tip');
/* A pane is a tree with the node that it shows in full width. Callers grow upwards in a pane that is flipped. */
let view='straight',pivot=REST,panes=[],chosen=null;
let rows=[],itemOf=new Map(),shown=new Map(),matched=null;

function makePanes(){
  const pane=(root,flip)=>({root,zoom:root,flip});
  const callees=view==='sandwich'?calleesOf(pivot,weights):null;
  if(callees)panes=[pane(callersOf(pivot,weights),true),pane(callees,false)];
  else{
    if(view==='sandwich')view='straight';
    panes=[pane(weights[view]=weights[view]||(view==='inverted'?invertedTree:straightTree)(weights),false)];
  }
  chosen=panes[panes.length-1].root;
}
/* Makes the trees anew for other weights or another view, and keeps what they show. */
function remake(paths,pick){
  makePanes();
  panes.forEach((p,i)=>{p.zoom=follow(p.root,paths[i]||[]);});
  chosen=pick?follow(panes[pick[0]%panes.length].root,pick[1]):panes[panes.length-1].zoom;
}
function paneOf(n){
  while(n.up)n=n.up;
  return panes.find(p=>p.root===n)||panes[0];
}
function picked(){return [panes.indexOf(paneOf(chosen)),pathOf(chosen)];}

/* Places [node, x, width, level, is a caller of the zoomed one] by calling put. Returns how many levels there are. */
function layout(pane,width,put){
  const k=metric,todo=[[pane.zoom,0,width,pane.zoom.depth]];
  let deepest=0;
  for(let n=pane.zoom.up;n;n=n.up)put(n,0,width,n.depth,true);
  while(todo.length){
    const [n,x,w,level]=todo.pop();
    put(n,x,w,level,false);
    deepest=Math.max(deepest,level);
    if(!(n instanceof Group))divide(n,x,w,level,k,todo);
    else if(n===pane.zoom)open(n,x,w,level,k,todo);
  }
  return deepest+1;
}
/* The kids of a node, as wide as their weight; those that are too narrow are one box. */
function divide(n,x,w,level,k,todo){
  const kids=n.all(k),scale=w/Math.max(1,n.v(k));
  let i=0,sum=0;
  for(;i<kids.length&&kids[i].v(k)*scale>=NARROWEST;i++){
    const wide=kids[i].v(k)*scale;
    todo.push([kids[i],x,wide,level+1]);
    x+=wide;
  }
  for(let j=i;j<kids.length;j++)sum+=kids[j].v(k);
  if(i<kids.length&&sum*scale>=NARROWEST)
    todo.push([i+1===kids.length?kids[i]:n.group(i,k),x,sum*scale,level+1]);
}
/* The members of a box that was opened. Those behind the widest ones are one box again, which opens, too. */
function open(n,x,w,level,k,todo){
  const members=n.members(),most=Math.max(1,Math.floor(w/OPENED)),first=members.slice(0,most);
  const more=members.length>first.length,room=more?w-Math.min(NARROW_REST,w/4):w;
  const sum=first.reduce((s,m)=>s+m.v(k),0);
  for(const m of first){
    const wide=room*m.v(k)/Math.max(1,sum);
    todo.push([m,x,wide,level+1]);
    x+=wide;
  }
  if(more)todo.push([n.up.group(n.from+first.length,k),x,w-room,level+1]);
}
function draw(){
  const width=Math.max(50,graph.clientWidth-parseFloat(getComputedStyle(graph).paddingLeft)*2);
  let above=0;
  rows=[];itemOf=new Map();hideTip();
  for(const pane of panes){
    const items=[];
    const levels=layout(pane,width,(n,x,w,level,up)=>items.push({n,x,w,level,up}));
    for(const item of items){
      if(pane.flip&&!item.level)continue; /* the function itself is in the other pane */
      const row=pane.flip?levels-1-item.level:above+item.level;
      item.row=row;
      (rows[row]=rows[row]||[]).push(item);
      itemOf.set(item.n,item);
    }
    if(pane.flip)above=levels-1;
  }
  for(const row of rows)if(row)row.sort((a,b)=>a.x-b.x);
  rowsAt.style.height=rows.length*ROW+'px';
  render();tell();
}
/* Makes the elements of the rows that are in the window, or nearly. */
function render(){
  const first=Math.max(0,Math.floor(graph.scrollTop/ROW)-5),last=Math.ceil((graph.scrollTop+graph.clientHeight)/ROW)+5;
  const all=document.createDocumentFragment();
  shown=new Map();
  for(let r=first;r<=last&&r<rows.length;r++)for(const item of rows[r]||[])all.append(element(item));
  rowsAt.replaceChildren(all);
  const at=shown.get(chosen);
  if(at)graph.setAttribute('aria-activedescendant',at.id);else graph.removeAttribute('aria-activedescendant');
}
function element({n,x,w,level,row,up}){
  const e=document.createElement('div'),hit=matched&&matches(n);
  e.className='f'+(w>12?' wide':'')+(up?' up':'')+(n===chosen?' sel':'')+(n instanceof Group||n.rest?' many':'')+
    (matched?(hit?' hit':' dim'):'')+(view==='sandwich'&&!n.up?' pivot':'')+(n.fn>=0&&look[n.frame].kind==='inlined'?' in':'');
  e.style.cssText='left:'+x.toFixed(2)+'px;width:'+w.toFixed(2)+'px;top:'+row*ROW+'px;background:'+color(n);
  if(w>24)e.textContent=n.name;
  e.id='b'+shown.size;
  e.setAttribute('role','treeitem');
  e.setAttribute('aria-level',level+1);
  e.setAttribute('aria-selected',n===chosen);
  e.setAttribute('aria-label',n.name+(n.fn>=0&&look[n.frame].kind==='inlined'?' (inlined), ':', ')+describe(n));
  e.onclick=()=>zoomTo(n);
  e.onmousemove=event=>hover(n,event);
  e.onmouseleave=hideTip;
  shown.set(n,e);
  return e;
}
function describe(n){
  if(data.diff&&data.shares)return percent(side(n,0))+' to '+percent(side(n,1));
  if(data.diff)return amount(n.v(0),0)+' to '+amount(n.v(1),1)+(change(n)?', '+(change(n)>0?'+':'-')+amount(Math.abs(change(n)),0):'');
  return amount(n.v(metric),metric)+' ('+percent(part(n.v(metric),metric))+')';
}
/* Where it is in the source. A box may stand for calls from several lines. */
function place(n){
  const f=n.frame,parts=[];
  if(n.fn<0||!f)return '';
  if(frames.file[f])parts.push(data.files[frames.file[f]-1]+(frames.line[f]?':'+frames.line[f]:'')+(n.lines?' and other lines':''));
  else if(frames.line[f])parts.push('line '+frames.line[f]+(n.lines?' and others':''));
  if(look[f].kind==='inlined')parts.push('(inlined)');
  if(frames.module[f])parts.push('in '+data.modules[frames.module[f]-1]);
  else if(look[f].module)parts.push('in '+look[f].module);
  return parts.join(' ');
}
function tell(){
  const at=$('path'),path=[],piece=(tag,text,name)=>{
    const e=document.createElement(tag);
    e.textContent=text;if(name)e.className=name;
    at.append(e);
    return e;
  };
  at.textContent='';
  for(let n=chosen;n;n=n.up)path.unshift(n.name);
  piece('b',chosen.name);
  piece('span',describe(chosen)+(data.diff||view!=='straight'?'':', self '+amount(chosen.self(metric),metric)));
  const where=place(chosen);
  if(where)piece('span',where,'place');
  if(!chosen.up)path.length=0;
  const trail=document.createElement('bdi');
  trail.textContent=path.join(view==='inverted'||paneOf(chosen).flip?' < ':' > ');
  piece('span','','trail').append(trail);
  [...$('metrics').children].forEach((b,i)=>b.setAttribute('aria-pressed',i===metric));
  $('invert').setAttribute('aria-pressed',view==='inverted');
  $('sandwich').setAttribute('aria-pressed',view==='sandwich');
  $('sandwich').disabled=view!=='sandwich'&&chosen.fn<0;
}
function hideTip(){tip.style.display='none';}
function showTip(event,above){
  tip.style.display='block';
  tip.style.left=Math.max(0,Math.min(event.clientX+14,innerWidth-tip.offsetWidth-8))+'px';
  const y=above?event.clientY-tip.offsetHeight-8:event.clientY+14;
  tip.style.top=Math.max(0,Math.min(y,innerHeight-tip.offsetHeight-8))+'px';
}
function hover(n,event){
  const name=document.createElement('b'),where=document.createElement('small'),table=document.createElement('table');
  const line=(title,v,k,self)=>{
    const row=table.insertRow();
    for(const text of [title,amount(v,k),percent(part(v,k)),'self '+amount(self,k)])row.insertCell().textContent=text;
  };
  tip.textContent='';
  name.textContent=n.name;
  where.textContent=n instanceof Group?'a click opens it':place(n);
  weights.kinds.forEach(([title],k)=>line(title,n.v(k),k,n.self(k)));
  if(n.fn>=0){
    const sums=weights.functions(metric);
    line('in all contexts',sums.total[n.fn],metric,sums.own[n.fn]);
  }
  tip.append(name,where,table);
  showTip(event,false);
}
/* Selects a node, and zooms out or in where it is not drawn. */
function choose(n){
  if(!n)return;
  chosen=n;
  if(!itemOf.has(n))paneOf(n).zoom=n.up&&n.up.v(metric)&&!(n instanceof Group)?n.up:n;
  draw();
  if(!itemOf.has(n)){paneOf(n).zoom=n;draw();}
  scrollTo_(n);
}
function scrollTo_(n){
  const item=itemOf.get(n);
  if(!item)return;
  const y=item.row*ROW,top=graph.scrollTop,room=graph.clientHeight;
  if(y<top+ROW)graph.scrollTop=Math.max(0,y-2*ROW);
  else if(y+3*ROW>top+room)graph.scrollTop=y+4*ROW-room;
  render();
}
function zoomTo(n){
  chosen=n;
  paneOf(n).zoom=n;
  if(view==='sandwich'&&!n.up)for(const p of panes)p.zoom=p.root;
  draw();scrollTo_(n);save(true);
}
/* The box above, below, to the left or to the right. */
function neighbour(rowStep,step){
  const item=itemOf.get(chosen);
  if(!item)return panes[panes.length-1].zoom;
  if(step){
    const row=rows[item.row],next=row[row.indexOf(item)+step];
    return next&&next.n;
  }
  const outwards=paneOf(chosen).flip?rowStep>0:rowStep<0;
  if(view==='sandwich'&&!chosen.up&&rowStep<0)return panes[0].zoom.all(metric)[0];
  if(outwards)return chosen.up?chosen.up.up||!paneOf(chosen).flip?chosen.up:panes[1].root:null;
  const kids=(rows[item.row+rowStep]||[]).filter(i=>i.n.up===chosen&&!i.up);
  return kids.length?kids.reduce((a,b)=>b.w>a.w?b:a).n:chosen.all(metric)[0];
}
