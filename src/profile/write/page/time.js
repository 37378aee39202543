/* SPDX-License-Identifier: MIT */
/* What happened when: the memory that was live, or the bars of each thread. An interval can be selected; the graph
 * then shows what was in it. */
let interval=null,before=null; /* {first, last, row}: moments; row: null for all threads */
const bars=data.timeline,curve=data.curve||null,moments=curve?curve.highest.length:bars&&bars.rows.length?bars.rows[0][3].length:0;
const momentWidth=curve?curve.width:bars?bars.width:0,charts=[];
/* What is in each moment of each row: the boxes, and one or two numbers for each. */
let pieces=null;
function readPieces(){
  if(pieces)return pieces;
  const numbers=new Numbers(curve?curve.pieces:bars.samples),columns=curve?2:1,at=[],box=[],values=[[],[]];
  while(numbers.at<numbers.bytes.length){
    at.push(box.length);
    for(let left=numbers.next(),b=0;left--;){
      box.push(b+=numbers.next());
      for(let i=0;i<columns;i++)values[i].push(numbers.next());
    }
  }
  at.push(box.length);
  return pieces={at,box,values};
}
function addPieces(own,row,first,last,column,sign){
  const {at,box,values}=readPieces();
  for(let i=at[row*moments+first];i<at[row*moments+last+1];i++)own[box[i]]+=sign*values[column][i];
}
function weightsOf({first,last,row}){
  const own=new Float64Array(N);
  if(curve){
    const live=new Float64Array(N);
    addPieces(own,0,first,last,0,1);
    addPieces(live,0,0,last,0,1);
    addPieces(live,0,0,last,1,-1);
    return new Weights([['allocated in the interval','bytes'],['live at its end','bytes']],[own,live]);
  }
  for(let r=0;r<bars.rows.length;r++)if(row===null||row===r)addPieces(own,r,first,last,0,1);
  return new Weights([[data.kinds[0][0]+' in the interval',data.kinds[0][1]]],[own]);
}
const canSelect=()=>curve?curve.pieces!==null:Boolean(bars&&bars.samples);
/* Takes the weights of an interval, or those of the whole profile for null. */
function setWeights(to){
  if(to&&(!moments||!canSelect()))to=null;
  if(to){
    to={first:Math.min(to.first,to.last,moments-1),last:Math.min(Math.max(to.first,to.last),moments-1),row:to.row};
    if(curve||to.row>=bars.rows.length)to.row=null;
  }
  if(!interval&&to)before=metric;
  const was=interval;
  interval=to;
  weights=to?weightsOf(to):whole;
  if(to)metric=was?Math.min(metric,weights.kinds.length-1):curve&&/live/.test(whole.kinds[metric][0])?1:0;
  else if(was)metric=before;
}
function select(to,isStep){
  const paths=panes.map(p=>pathOf(p.zoom)),pick=picked();
  setWeights(to);
  remake(paths,pick);
  refresh();save(isStep);
}
function spanText(i){
  return time(i.first*momentWidth)+' to '+time((i.last+1)*momentWidth);
}
/* Shows in all charts what is selected. */
function showInterval(){
  for(const chart of charts){
    const isIn=interval&&(interval.row===null||chart.row===null||interval.row===chart.row);
    chart.mark.setAttribute('width',isIn?interval.last-interval.first+1:0);
    chart.mark.setAttribute('x',isIn?interval.first:0);
  }
  if(!charts.length)return;
  const row=interval&&interval.row!==null?bars.rows[interval.row]:null;
  $('span').textContent=interval?(row?threadName(row)+', ':'')+spanText(interval)+': '+
    weights.kinds.map(([title],k)=>amount(weights.total[k][0],k)+' '+title).join(', '):
    canSelect()?'drag, or use arrows with Shift, to select an interval':'too many samples to select an interval';
  $('all').hidden=!interval;
  $('span').classList.toggle('on',Boolean(interval));
}
const threadName=([name])=>name===null?count(bars.others,'other thread'):visible(name)||'(no name)';
const SVG='http://www.w3.org/2000/svg';
function shape(up,tag,attributes){
  const e=document.createElementNS(SVG,tag);
  for(const [key,value] of Object.entries(attributes))e.setAttribute(key,value);
  up.append(e);
  return e;
}
/* A chart of `moments` columns in which an interval can be selected. */
function makeChart(path,label,row,text){
  const svg=document.createElementNS(SVG,'svg'),chart={row,svg};
  for(const [key,value] of Object.entries({viewBox:'0 0 '+moments+' 1',preserveAspectRatio:'none',tabindex:0,
    role:'application','aria-label':label+'. Arrows move the interval, Shift with arrows makes it longer, Escape selects all'}))
    svg.setAttribute(key,value);
  shape(svg,'path',{d:path});
  chart.mark=shape(svg,'rect',{class:'chosen',x:0,y:0,width:0,height:1});
  charts.push(chart);
  if(canSelect())listen(chart);
  svg.onmousemove=event=>{tip.textContent=text(momentAt(svg,event));showTip(event,true);};
  svg.onmouseleave=hideTip;
  return svg;
}
function momentAt(svg,event){
  const box=svg.getBoundingClientRect();
  return Math.max(0,Math.min(moments-1,Math.floor((event.clientX-box.left)/box.width*moments)));
}
function listen(chart){
  const {svg,row}=chart;
  let from=null;
  svg.onpointerdown=event=>{
    from=momentAt(svg,event);
    try{svg.setPointerCapture(event.pointerId);}catch{/* the pointer is gone */}
    select({first:from,last:from,row},true);
  };
  svg.onpointermove=event=>{
    if(from===null)return;
    const to=momentAt(svg,event);
    if(interval&&to!==(from===interval.first?interval.last:interval.first))select({first:from,last:to,row},false);
  };
  svg.onpointerup=svg.onpointercancel=()=>{from=null;};
  svg.onkeydown=event=>{
    const by={ArrowLeft:-1,ArrowRight:1}[event.key],now=interval||{first:0,last:0};
    if(event.key==='Escape'&&interval)select(null,true);
    else if(!by)return;
    else if(event.shiftKey)select({first:now.first,last:Math.max(now.first,now.last+by),row},false);
    else{
      const move=Math.max(-now.first,Math.min(moments-1-now.last,interval?by:0));
      select({first:now.first+move,last:now.last+move,row},false);
    }
    event.preventDefault();event.stopPropagation();
  };
}
const columns=(values,top)=>values.map((v,i)=>v?'M'+i+' 1V'+(1-v/top).toFixed(3)+'h1V1z':'').join('');
function threadRow(line,r){
  const [name,id,total,values]=line,isTime=data.kinds[0][1]==='nanoseconds';
  const top=isTime&&name!==null?bars.width:Math.max(1,...bars.rows.filter(l=>l[0]!==null||name===null).map(l=>Math.max(...l[3])));
  const row=document.createElement('div'),button=document.createElement('button'),text=threadName(line);
  row.className='row';
  button.textContent=text+' '+amount(total,0);
  button.title=text+(id?', thread '+id:'');
  button.disabled=!canSelect();
  button.onclick=()=>select(interval&&interval.row===r&&interval.last-interval.first+1===moments?null:{first:0,last:moments-1,row:r},true);
  row.append(button,makeChart(columns(values,top),text,r,i=>text+': '+scaledKind(values[i])+
    (isTime?' of '+time(bars.width):'')+', '+time(i*bars.width)+' after the first sample'));
  return row;
}
function scaledKind(v){return data.kinds[0][1]==='nanoseconds'?time(v):v.toLocaleString('en');}
const bytes=v=>scaled(v,1024,['B','KiB','MiB','GiB','TiB']);
function memoryChart(){
  const top=Math.max(1,curve.peak,...curve.highest),at=Math.min(moments-1,Math.floor(curve.peakAt/momentWidth));
  const svg=makeChart(columns(curve.highest,top*1.04),'Live memory over time, at most '+bytes(curve.peak)+' after '+time(curve.peakAt),
    null,i=>'at most '+bytes(curve.highest[i])+' live, '+time(i*momentWidth)+' to '+time((i+1)*momentWidth));
  svg.setAttribute('class','curve');
  shape(svg,'line',{class:'peak',x1:at+0.5,x2:at+0.5,y1:0,y2:1});
  return svg;
}
function axis(){
  const e=document.createElement('div'),left=document.createElement('i'),right=document.createElement('i');
  e.className='axis';
  left.textContent=time(0);right.textContent=time(moments*momentWidth);
  e.append(left,right);
  return e;
}
function drawTime(){
  if(!moments)return;
  const title=document.createElement('h2'),span=document.createElement('span'),all=document.createElement('button');
  title.textContent=curve?'Live memory, peak '+bytes(curve.peak)+' after '+time(curve.peakAt):data.kinds[0][0]+' of each thread over time';
  span.id='span';all.id='all';all.textContent='Whole run';
  span.setAttribute('role','status');
  all.onclick=()=>select(null,true);
  title.append(span,all);
  const k=data.kinds.findIndex(([name])=>name==='live at peak');
  if(curve&&k>=0){
    const peak=document.createElement('button');
    peak.id='peak';peak.textContent='What lived at the peak';
    peak.onclick=()=>{select(null,false);setMetric(k);};
    title.append(peak);
  }
  $('time').append(title,...(curve?[memoryChart()]:bars.rows.map(threadRow)),axis());
}
