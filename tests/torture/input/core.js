// SPDX-License-Identifier: MIT
// Promises, generators, workers, exceptions, buffers, regular expressions.
const { Worker } = require('worker_threads');
const zlib = require('zlib');
const scale = Number(process.argv[2]);

function deep(n) { if (n === 0) throw new Error('bottom'); return 1 + deep(n - 1); }
function* steps(n) { for (let i = 0; i < n; i++) yield 'x'.repeat(i); }
async function round(i) {
  let total = 0;
  try { deep(i % 100); } catch (error) { total += error.message.length; }
  for (const text of steps(30)) total += text.length;
  total += 'abc'.repeat(100).replace(/(a|b)+/g, m => m.toUpperCase()).length;
  await new Promise(resolve => setImmediate(resolve));
  total += zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(1000 + i))).length;
  total += JSON.parse(JSON.stringify([...Array(100).keys()])).length;
  return total;
}
async function main() {
  let total = 0;
  for (let i = 0; i < scale * 20; i++) total += await round(i);
  for (let i = 0; i < 3; i++) {
    total += await new Promise(resolve => new Worker(
      'require("worker_threads").parentPort.postMessage([...Array(1000).keys()].map(String).join("").length)',
      { eval: true }).on('message', resolve));
  }
  console.log(total);
}
main();
