#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# node: JSON both ways, buffers, strings, worker threads.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need node
cat > "$work/program.js" << 'PROGRAM'
const fs = require('fs');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
function churn(seed) {
  let kept = [];
  let sum = 0;
  for (let i = 0; i < 3000; ++i) {
    const buffer = Buffer.alloc((i * 7919 + seed) % 20000 + 1, i % 256);
    kept.push(buffer);
    if (kept.length > 200) sum += kept.shift().reduce((a, b, n) => (n < 10 ? a + b : a), 0);
  }
  const tree = Array.from({ length: 20000 }, (_, i) => ({ id: i, text: `text ${i} of ${seed}`, list: [i, i + 1] }));
  const again = JSON.parse(JSON.stringify(tree));
  return again.length + again[19999].list[1] + (sum > 0 ? 1 : 0);
}
if (isMainThread) {
  if (!fs.readFileSync('/proc/self/maps', 'utf8').includes(process.argv[2])) throw new Error('not loaded');
  let answers = [churn(0)];
  let left = 3;
  for (let i = 1; i <= 3; ++i) {
    new Worker(__filename, { workerData: i }).on('message', (m) => {
      answers.push(m);
      if (--left === 0) console.log(answers.join(' '));
    });
  }
} else {
  parentPort.postMessage(churn(workerData));
}
PROGRAM
run() {
  equal "node's answer" "40001 40001 40001 40001" "$(with_library node "$work/program.js" "$library")"
}
with_both_front_ends run
