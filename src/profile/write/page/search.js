/* SPDX-License-Identifier: MIT */
/* The search: over all functions of the profile, whether or not they are drawn. */
let pattern='',isRegex=false,hits=[],hit=-1;
/* Returns a test for texts, or null where the pattern is not a regular expression. */
function tester(text){
  if(!isRegex){
    const low=text.toLowerCase();
    return s=>s.toLowerCase().includes(low);
  }
  try{
    const expression=new RegExp(text,'i');
    return s=>expression.test(s);
  }catch{return null;}
}
/* Marks the functions that fit; with file:, module: and kind: those that have such a frame. */
function findFunctions(){
  const split=/^(file|module|kind):(.+)$/.exec(pattern),fits=tester(split?split[2]:pattern);
  const found=new Uint8Array(data.functions.length);
  if(!fits)return null;
  if(!split)data.functions.forEach((name,f)=>{found[f]=fits(name)?1:0;});
  else for(let i=1;i<frames.fn.length;i++){
    const text=split[1]==='file'?(frames.file[i]?data.files[frames.file[i]-1]:''):
      split[1]==='module'?look[i].module:KINDS[look[i].kind][0]+' '+look[i].kind;
    if(text&&fits(text))found[frames.fn[i]]=1;
  }
  return found;
}
function matches(n){
  if(!matched)return false;
  if(n instanceof Group)return n.members().some(m=>matches(m));
  return n.fn>=0&&matched[n.fn]===1;
}
/* Finds the contexts that match, and adds up what they weigh; a match below a match counts once. */
function search(){
  hits=[];hit=-1;
  matched=pattern?findFunctions():null;
  if(!pattern){$('found').textContent='';enableSteps();return;}
  if(!matched){$('found').textContent='not a regular expression';enableSteps();return;}
  const {fn,end}=tree,total=weights.total[metric],functions=new Set();
  let sum=0,until=0;
  for(let b=1;b<N;b++){
    if(fn[b]<0||!matched[fn[b]]||!total[b])continue;
    hits.push(b);functions.add(fn[b]);
    if(b>=until){sum+=total[b];until=end[b];}
  }
  const contexts=hits.length;
  sum+=searchLeftOut(functions);
  const k=metric,totals=view==='straight'?null:weights.functions(k).total;
  if(totals)hits=[...functions].sort((a,b)=>totals[b]-totals[a]);
  else hits.sort((a,b)=>total[b]-total[a]||a-b);
  $('found').textContent=(functions.size?count(functions.size,'function')+' in '+count(contexts,'context')+', '+
    amount(sum,k)+' ('+percent(part(sum,k))+')':'0 found, '+amount(0,k)+' (0.0%)')+more;
  enableSteps();
}
/* What is left out is known by function: if several match, one may be below another there. */
let more='';
function searchLeftOut(functions){
  let left=0,seen=0;
  more='';
  if(weights!==whole)return 0;
  for(const [f,...v] of data.leftOut){
    const total=v[whole.kinds.length+metric];
    if(!matched[f]||!total)continue;
    functions.add(f);
    left+=total;seen++;
  }
  if(functions.size===1||!seen)return left;
  more=' and up to '+amount(left,metric)+' in contexts too small for a box';
  return 0;
}
function enableSteps(){$('next').disabled=$('previous').disabled=!hits.length;}
/* Goes to another hit, the heaviest one first. */
function step(by){
  if(!hits.length)return;
  hit=((hit<0&&by<0?0:hit)+by+hits.length)%hits.length;
  if(view==='straight'){
    const path=[];
    for(let b=hits[hit];b;b=tree.parent[b])path.unshift(String(tree.fn[b]));
    choose(follow(panes[0].root,path));
  }else if(view==='inverted')choose(panes[0].root.kid(hits[hit])||panes[0].root);
  else{pivot=hits[hit];makePanes();draw();}
  $('found').textContent=$('found').textContent.replace(/^\d[\d,]* of [\d,]+: /,'');
  $('found').textContent=(hit+1).toLocaleString('en')+' of '+hits.length.toLocaleString('en')+': '+$('found').textContent;
  save(false);
}
function setPattern(text,regex){
  pattern=text;isRegex=regex;
  $('search').value=text;
  $('regex').setAttribute('aria-pressed',regex);
  search();render();save(false);
}
