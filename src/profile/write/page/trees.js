/* SPDX-License-Identifier: MIT */
/* Trees of what is drawn: down to callees, up to callers. A node is made when it is first drawn or searched for.
 * Boxes of one function below one node are one node. */
class Node{
  constructor(up,fn,frame){
    this.up=up;this.fn=fn;this.frame=frame;this.depth=up?up.depth+1:0;
    this.values=[];this.groups=null;this.sorted=null;
  }
  get name(){return this.fn>=0?data.functions[this.fn]:this.rest?count(this.rest,'smaller context'):'all';}
  v(k){return this.values[k]===undefined?this.values[k]=this.sum(k):this.values[k];}
  /* The kids with weight k, the heaviest first. */
  all(k){
    this.sorted=this.sorted||[];
    if(!this.sorted[k])
      this.sorted[k]=[...this.kids().values()].filter(n=>n.v(k)>0).sort((a,b)=>b.v(k)-a.v(k)||a.fn-b.fn);
    return this.sorted[k];
  }
  kid(fn){return this.kids().get(fn);}
  /* The box for the kids from a rank on. */
  group(from,k){
    const key=from+' '+k;
    this.groups=this.groups||new Map();
    if(!this.groups.has(key))this.groups.set(key,new Group(this,from,k));
    return this.groups.get(key);
  }
}
/* Kids of a node that are drawn as one box, which opens. */
class Group extends Node{
  constructor(up,from,k){super(up,REST,0);this.from=from;this.k=k;}
  get name(){return count(this.members().length,'smaller one');}
  members(){return this.up.all(this.k).slice(this.from);}
  kids(){return new Map(this.members().map(n=>[n.fn,n]));}
  sum(k){return this.members().reduce((sum,n)=>sum+n.v(k),0);}
  self(k){return this.members().reduce((sum,n)=>sum+n.self(k),0);}
}
const add=(column,list)=>{let sum=0;for(let i=0;i<list.length;i++)sum+=column[list[i]];return sum;};
/* A function below its callers: a list of boxes, none of which is inside of another one. */
class Down extends Node{
  constructor(up,fn,boxes,weights){
    super(up,fn,tree.frame[boxes[0]]);
    this.boxes=boxes;this.weights=weights;this.made=null;
    this.rest=fn===REST&&up?boxes.reduce((sum,b)=>sum+(restCount.get(b)||0),0):0;
    this.lines=boxes.length>1?boxes.some(b=>tree.frame[b]!==this.frame||tree.lines[b]):tree.lines[boxes[0]]>0;
  }
  kids(){
    if(this.made)return this.made;
    const lists=new Map(),{end,fn}=tree;
    for(const b of this.boxes)
      for(let c=b+1;c<end[b];c=end[c]){
        const list=lists.get(fn[c]);
        if(list)list.push(c);else lists.set(fn[c],[c]);
      }
    this.made=new Map();
    for(const [f,list] of lists)this.made.set(f,new Down(this,f,list,this.weights));
    return this.made;
  }
  sum(k){return add(this.weights.total[k],this.boxes);}
  self(k){return this.rest?0:add(this.weights.own[k],this.boxes);}
}
/* A function above its callees: for each box whose weight it gets, how far the way up has come. */
class Up extends Node{
  constructor(up,fn,origins,here,columns){
    super(up,fn,tree.frame[here.length?here[0]:0]);
    this.origins=origins;this.here=here;this.columns=columns;this.made=null;this.extra=null;
    this.lines=here.some(b=>tree.frame[b]!==this.frame||tree.lines[b]);
  }
  kids(){
    if(this.made)return this.made;
    const lists=new Map(),{parent,fn}=tree;
    for(let i=0;i<this.here.length;i++){
      const at=this.up||this.pivot?parent[this.here[i]]:this.here[i];
      if(!at)continue;
      let list=lists.get(fn[at]);
      if(!list)lists.set(fn[at],list=[[],[]]);
      list[0].push(this.origins[i]);list[1].push(at);
    }
    this.made=new Map();
    for(const [f,[origins,here]] of lists)this.made.set(f,new Up(this,f,origins,here,this.columns));
    this.addLeftOut();
    return this.made;
  }
  /* What is left out is known by function, but not its callers. */
  addLeftOut(){
    for(const [f,v] of this.leftOut||[]){
      const own=v.slice(0,this.columns.length);
      if(!own.some(x=>x>0))continue;
      if(!this.made.has(f))this.made.set(f,new Up(this,f,[],[],this.columns));
      this.made.get(f).extra=own;
    }
    if(this.extra)this.made.set(REST,new Unknown(this,this.extra));
  }
  sum(k){return add(this.columns[k],this.origins)+(this.extra?this.extra[k]:0);}
  self(k){return this.v(k)-[...this.kids().values()].reduce((sum,n)=>sum+n.v(k),0);}
}
/* Callers that are not in the page. */
class Unknown extends Node{
  constructor(up,own){super(up,REST,0);this.own=own;}
  get name(){return 'smaller contexts';}
  kids(){return new Map();}
  sum(k){return this.own[k];}
  self(){return 0;}
}
function straightTree(w){return new Down(null,REST,[0],w);}
/* Who called it: every box's own weight goes up the path of its callers. */
function invertedTree(w){
  const origins=[];
  for(let b=0;b<N;b++)if(tree.fn[b]>=0&&w.own.some(column=>column[b]>0))origins.push(b);
  const top=new Up(null,REST,origins,origins,w.own);
  if(w===whole)top.leftOut=data.leftOut.map(([f,...v])=>[f,v]);
  top.values=w.total.map(column=>column[0]);
  return top;
}
/* The outermost boxes of a function: all of its contexts, each weight counted once. */
function outermost(f){
  const boxes=[];
  for(let b=1;b<N;b++)if(tree.fn[b]===f&&!inside()[b])boxes.push(b);
  return boxes;
}
function callersOf(f,w){
  const boxes=outermost(f),top=new Up(null,f,boxes,boxes,w.total);
  top.pivot=true;
  return top;
}
function calleesOf(f,w){const boxes=outermost(f);return boxes.length?new Down(null,f,boxes,w):null;}
/* The functions from the top to a node; a group is its rank with a mark. */
function pathOf(n){
  const path=[];
  for(;n.up;n=n.up)path.unshift(n instanceof Group?'g'+n.from:String(n.fn));
  return path;
}
/* Follows a path as far as it goes. */
function follow(n,path){
  for(const step of path){
    const next=step[0]==='g'?n.all(metric).length>+step.slice(1)?n.group(+step.slice(1),metric):null:n.kid(+step);
    if(!next||!next.v(metric))break;
    n=next;
  }
  return n;
}
