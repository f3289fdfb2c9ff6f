// SPDX-License-Identifier: MIT
//
// Objects and buffers in JavaScript: reads records, indexes and writes them again, then compresses and hashes the text
// in pieces. V8 keeps objects in a heap of its own, made of pages it maps itself; from malloc come its compiler, its
// tables, the contents of buffers and zlib's state. What is compared here is how an allocator serves the rest of a large
// program, threads of V8 and libuv included.
//
//   node objects.js records.json
"use strict";
const fs = require("fs");
const zlib = require("zlib");
const crypto = require("crypto");

const ROUNDS = 4;
const PIECE = 8192;

function check(right, what) {
  if (right) return;
  console.error(`objects.js: ${what}`);
  process.exit(1);
}

const text = fs.readFileSync(process.argv[2], "utf8");
for (let round = 0; round < ROUNDS; round++) {
  const records = JSON.parse(text);
  const byTag = new Map();
  for (const record of records) {
    for (const tag of Object.keys(record.tags)) {
      if (!byTag.has(tag)) byTag.set(tag, []);
      byTag.get(tag).push(record);
    }
  }
  let tags = 0;
  for (const list of byTag.values()) {
    list.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id));
    tags += list.length;
  }
  check(tags === records.length * 4, "tags were lost");

  const bytes = Buffer.from(JSON.stringify(records));
  const pieces = [];
  for (let at = 0; at < bytes.length; at += PIECE) {
    pieces.push(zlib.deflateSync(bytes.subarray(at, at + PIECE), { level: 1 }));
  }
  const back = Buffer.concat(pieces.map((piece) => zlib.inflateSync(piece)));
  const digest = (data) => crypto.createHash("sha256").update(data).digest("hex");
  check(digest(back) === digest(bytes), "the text changed on its way");
}
console.log(text.length);
