/* SPDX-License-Identifier: MIT */
/* What the colours mean: modules, kinds of frames, or a difference. */
const KINDS={native:['native',12,'70%'],cpp:['C++',45,'85%'],managed:['managed',110,'50%'],
  interpreted:['interpreted',110,'50%'],compiled:['compiled',145,'50%'],wrapper:['wrapper',70,'60%'],
  inlined:['inlined',180,'50%'],kernel:['kernel',28,'95%'],label:['label',265,'45%'],special:['other',220,'8%']};
const HUES=[12,205,45,140,280,330,180,85,240,25];
/* By enum incstack_frame_kind; 6: a label. Frames of unknown kind are told apart by their names. */
const KIND_OF=[null,'interpreted','compiled','inlined','wrapper',null,'label'];
/* What compilers append to the names of parts and copies of functions. */
const CLONE=/\.(constprop|isra|part|cold|clone|lto_priv|llvm|localalias|ctor|dtor|omp_fn|resolver|ifunc|avx\w*|sse\w*)(?=[.\d]|$)/;
function kindOf(name,kind){
  if(KIND_OF[kind])return KIND_OF[kind];
  if(kind===5)return /::|^operator|~/.test(name)?'cpp':'native';
  if(/_\[k\]$/.test(name))return 'kernel';
  if(/^(\[|0x)/.test(name))return 'special';
  if(/\+0x[0-9a-f]+$/.test(name))return 'native';
  if(/::|^operator|~/.test(name))return 'cpp';
  return !CLONE.test(name)&&/[\w$]\.[\w$<]|_\[j\]$/.test(name)?'managed':'native';
}
const base=path=>path.slice(path.lastIndexOf('/')+1)||path;
function moduleOf(frame){
  if(frames.module[frame])return base(data.modules[frames.module[frame]-1]);
  const name=frames.fn[frame]>=0?data.functions[frames.fn[frame]]:'';
  const split=/^([^\s[;]+)\+0x[0-9a-f]+$/.exec(name);
  return split?split[1]:/_\[k\]$/.test(name)?'[kernel]':'';
}
/* The kind and the module of each frame. */
const look=frames.fn.map((f,i)=>i?{kind:kindOf(data.functions[f],frames.kind[i]),module:moduleOf(i)}:
  {kind:'special',module:''});
let byModule=false,hueOf=new Map(),ranked=[],unknown=0;
/* The modules or kinds, by the weight that their frames have themselves. */
function rank(){
  const sums=new Map(),own=weights.own[metric];
  const key=byModule?'module':'kind';
  for(let b=1;b<N;b++)if(own[b]&&tree.frame[b]){
    const name=look[tree.frame[b]][key];
    sums.set(name,(sums.get(name)||0)+own[b]);
  }
  for(const l of look)if(l.kind!=='special'||byModule)if(!sums.has(l[key]))sums.set(l[key],0);
  unknown=byModule?sums.get('')||0:0;
  if(byModule)sums.delete('');
  ranked=[...sums].sort((a,b)=>b[1]-a[1]||(a[0]<b[0]?-1:1));
  /* Hues stay with the modules of the whole profile when the weight changes. */
  if(byModule)for(const [name] of ranked)if(!hueOf.has(name))hueOf.set(name,HUES[hueOf.size%HUES.length]);
}
/* What a difference compares: amounts, or shares of the totals. */
function side(n,k){return data.shares?part(n.v(k),k):n.v(k);}
function change(n){return side(n,1)-side(n,0);}
function shade(name){
  let h=0;
  for(let i=0;i<name.length;i++)h=(h*31+name.charCodeAt(i))|0;
  return h>>>0;
}
function color(n){
  if(data.diff){
    const d=change(n),all=Math.max(side(n,0),side(n,1))||1,s=Math.min(1,Math.abs(d)/all);
    return Math.abs(d)<(data.shares?0.0005:1)?'#d9dce2':'hsl('+(d>0?8:215)+' '+(35+55*s)+'% '+(86-26*s)+'%)';
  }
  const h=shade(n.name),light=(66+(h>>8)%12)+'%';
  if(n.fn<0)return 'hsl(220 8% '+light+')';
  const l=look[n.frame]||look[0];
  if(byModule)return hueOf.has(l.module)?'hsl('+(hueOf.get(l.module)+h%10-5)+' 62% '+light+')':'hsl(220 8% '+light+')';
  const [,hue,saturation]=KINDS[l.kind];
  return 'hsl('+(hue+h%16-8)+' '+saturation+' '+light+')';
}
function legend(){
  const at=$('legend');
  at.textContent='';
  const row=(text,background,pattern)=>{
    const e=document.createElement(pattern?'button':'span');
    e.textContent=text;e.title=text;e.style.background=background;
    if(pattern){e.title='Search for '+pattern;e.onclick=()=>setPattern(pattern,false);}
    at.append(e);
  };
  if(data.diff){row('more in b','hsl(8 90% 60%)');row('same','#d9dce2');row('less in b','hsl(215 90% 60%)');return;}
  const note=document.createElement('i');
  note.textContent=byModule?'Modules, by their own weight:':'Kinds, by their own weight:';
  at.append(note);
  rank();
  for(const [name,own] of ranked.slice(0,byModule?14:20))
    if(byModule)row(name+' '+percent(part(own,metric)),'hsl('+hueOf.get(name)+' 62% 72%)','module:'+name);
    else row(KINDS[name][0]+' '+percent(part(own,metric)),'hsl('+KINDS[name][1]+' '+KINDS[name][2]+' 70%)','kind:'+name);
  if(unknown)row('unknown module '+percent(part(unknown,metric)),'hsl(220 8% 72%)');
  if(byModule&&ranked.length>14)row(count(ranked.length-14,'other module'),'hsl(220 8% 72%)');
}
