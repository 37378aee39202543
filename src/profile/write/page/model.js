/* SPDX-License-Identifier: MIT */
/* The profile: its boxes as arrays, callers before callees, and what each has of each weight. */
'use strict';
const $=id=>document.getElementById(id);
const data=JSON.parse($('data').textContent);
$('data').remove();
/* Characters that hide or reorder others, as the tool prints them. */
const HIDING=/[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]/g;
const visible=s=>s.replace(HIDING,c=>'\\u{'+c.charCodeAt(0).toString(16)+'}');
for(const list of ['functions','files','modules'])data[list]=data[list].map(visible);

/* Reads numbers: seven bits in each byte, the lowest first. */
class Numbers{
  constructor(text){
    const raw=atob(text);
    this.bytes=new Uint8Array(raw.length);
    for(let i=0;i<raw.length;i++)this.bytes[i]=raw.charCodeAt(i);
    this.at=0;
  }
  next(){
    let byte=this.bytes[this.at++],value=byte&127;
    for(let scale=128;byte>127;scale*=128){byte=this.bytes[this.at++];value+=(byte&127)*scale;}
    return value;
  }
}

/* Frames: where a function is. Frame 0 stands for the root and for boxes without a function. */
const REST=-1,frames={fn:[REST],file:[0],line:[0],kind:[0],module:[0]};
function readFrames(){
  const numbers=new Numbers(data.frames);
  while(numbers.at<numbers.bytes.length)
    for(const column of ['fn','file','line','kind','module'])frames[column].push(numbers.next());
}
/* Box 0 is the root. The callees of box b are b + 1, and then the end of the callee before, up to the end of b. */
const N=data.count,KINDS_OF=data.kinds;
const tree={parent:new Int32Array(N),end:new Int32Array(N),frame:new Int32Array(N),fn:new Int32Array(N),
  lines:new Uint8Array(N)},restCount=new Map();
function readWeights(numbers,own,b){
  let mask=numbers.next();
  for(let k=0;mask>0;k++,mask=Math.floor(mask/2))if(mask%2)own[k][b]=numbers.next();
}
function readBoxes(){
  const numbers=new Numbers(data.boxes),own=KINDS_OF.map(()=>new Float64Array(N)),{parent,end,frame,fn,lines}=tree;
  fn[0]=REST;
  readWeights(numbers,own,0);
  for(let b=1,last=0;b<N;b++){
    const place=numbers.next();
    let up=place>>>1;
    lines[b]=place&1;
    while(up--){end[last]=b;last=parent[last];}
    parent[b]=last;
    frame[b]=numbers.next();
    fn[b]=frames.fn[frame[b]];
    if(!frame[b])restCount.set(b,numbers.next());
    readWeights(numbers,own,b);
    last=b;
  }
  for(let b=N-1;b>=0;b--)if(!end[b])end[b]=N;
  return own;
}
/* Weights of all boxes: of the whole profile, or of an interval. */
class Weights{
  constructor(kinds,own){
    this.kinds=kinds;this.own=own;
    this.total=own.map(column=>{
      const total=column.slice();
      for(let b=N-1;b>0;b--)total[tree.parent[b]]+=total[b];
      return total;
    });
    this.sums=[];
  }
  /* The own and the total weights of each function, in all contexts. A function within itself counts once. */
  functions(k){
    if(this.sums[k])return this.sums[k];
    const own=new Float64Array(data.functions.length),total=own.slice(),{fn}=tree;
    for(let b=1;b<N;b++){
      if(fn[b]<0)continue;
      own[fn[b]]+=this.own[k][b];
      if(!inside()[b])total[fn[b]]+=this.total[k][b];
    }
    if(this===whole)for(const [f,...v] of data.leftOut){own[f]+=v[k];total[f]+=v[this.kinds.length+k];}
    return this.sums[k]={own,total};
  }
}
/* Which boxes are inside of another box of their function. */
let insideOf=null;
function inside(){
  if(insideOf)return insideOf;
  insideOf=new Uint8Array(N);
  const open=new Int32Array(data.functions.length),path=[],{fn,end}=tree;
  for(let b=1;b<N;b++){
    while(path.length&&end[path[path.length-1]]<=b)open[fn[path.pop()]]--;
    if(fn[b]<0)continue;
    insideOf[b]=open[fn[b]]++>0?1:0;
    path.push(b);
  }
  return insideOf;
}
readFrames();
const whole=new Weights(KINDS_OF,readBoxes());
let weights=whole,metric=data.diff?1:0;

function time(v){return scaled(v,1000,['ns','µs','ms','s']);}
function scaled(v,step,names){
  let u=0;
  while(v>=step&&u<names.length-1){v/=step;u++;}
  return v.toFixed(u?1:0)+' '+names[u];
}
function amount(v,k){
  const unit=weights.kinds[k][1];
  if(unit==='bytes')return scaled(v,1024,['B','KiB','MiB','GiB','TiB']);
  if(unit==='nanoseconds')return time(v);
  return v.toLocaleString('en')+(unit==='count'||!unit?'':' '+unit);
}
function part(v,k){const all=weights.total[k][0];return all?v/all:0;}
function percent(x){return (100*x).toFixed(1)+'%';}
function count(n,what){return n.toLocaleString('en')+' '+what+(n===1?'':/x$/.test(what)?'es':'s');}
