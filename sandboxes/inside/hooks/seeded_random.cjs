// Makes what a Node in a sandbox draws at random a stream of the seed in SANDBOX_SEED.
//
// Each process and each worker thread has a stream of its own: it hangs on the command line, and on
// how many were started with the same one before. Covered: Math.random, and of `crypto` and
// `crypto.webcrypto` randomBytes, randomFill, randomInt, randomUUID and getRandomValues, at once
// and with a callback. Not covered: keys that `crypto` generates, fs.mkdtemp, native add-ons.
"use strict";
const crypto = require("crypto");
const fs = require("fs");

const STARTED = "/dev/shm/.started"; // holds an empty file for each process that was started
const { createHash } = crypto;

function ownKey(seed) {
  const command = fs.readFileSync("/proc/self/cmdline");
  const name = createHash("sha256").update(command).digest("hex").slice(0, 32);
  fs.mkdirSync(STARTED, { recursive: true });
  for (let number = 0; ; number++) {
    try {
      fs.closeSync(fs.openSync(`${STARTED}/${name}-${number}`, "wx"));
    } catch (error) {
      if (error.code === "EEXIST") continue;
      throw error;
    }
    return createHash("sha256").update(`${seed}/${name}/${number}`).digest();
  }
}

const key = ownKey(process.env.SANDBOX_SEED);
let drawn = 0;

// What belongs to a draw is decided when it is asked for, also where its answer comes later.
const nextDraw = () => drawn++;

function bytesOf(draw, size) {
  if (size === 0) return Buffer.alloc(0);
  const hash = createHash("shake256", { outputLength: size });
  return hash.update(key).update(`draw ${draw}`).digest();
}

function fill(draw, view, offset = 0, size) {
  const unit = view.BYTES_PER_ELEMENT || 1;
  const start = offset * unit;
  const length = size === undefined ? view.byteLength - start : size * unit;
  const bytes = bytesOf(draw, length);
  new Uint8Array(view.buffer || view, (view.byteOffset || 0) + start, length).set(bytes);
  return view;
}

// The real functions run first, since they know which arguments are wrong.
const real = {};
for (const name of ["randomBytes", "randomFillSync", "randomFill", "randomInt", "randomUUID"]) {
  real[name] = crypto[name];
}

function randomBytes(size, callback) {
  if (callback === undefined) return fill(nextDraw(), real.randomBytes(size));
  const draw = nextDraw();
  real.randomBytes(size, (error, bytes) => callback(error, bytes && fill(draw, bytes)));
}

function randomFillSync(view, offset, size) {
  real.randomFillSync(view, offset, size);
  return fill(nextDraw(), view, offset, size);
}

function randomFill(view, ...rest) {
  const callback = rest.pop();
  const draw = nextDraw();
  const filled = (error, got) => callback(error, got && fill(draw, got, ...rest));
  real.randomFill(view, ...rest, typeof callback === "function" ? filled : callback);
}

function randomInt(...bounds) {
  const callback = typeof bounds[bounds.length - 1] === "function" ? bounds.pop() : undefined;
  real.randomInt(...bounds);
  const [min, max] = bounds[1] === undefined ? [0, bounds[0]] : bounds;
  const value = min + Number(bytesOf(nextDraw(), 8).readBigUInt64BE() % BigInt(max - min));
  if (callback === undefined) return value;
  process.nextTick(callback, undefined, value);
}

function newUUID() {
  const bytes = bytesOf(nextDraw(), 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function randomUUID(options) {
  real.randomUUID(options);
  return newUUID();
}

Object.assign(crypto, { randomBytes, randomFillSync, randomFill, randomInt, randomUUID });
Object.defineProperty(crypto, "pseudoRandomBytes", { value: randomBytes });

if (crypto.webcrypto !== undefined) {
  const web = Object.getPrototypeOf(crypto.webcrypto);
  const { getRandomValues, randomUUID: webUUID } = web;
  web.getRandomValues = function (array) {
    Reflect.apply(getRandomValues, this, [array]);
    return fill(nextDraw(), array);
  };
  web.randomUUID = function () {
    Reflect.apply(webUUID, this, []);
    return newUUID();
  };
}
require("module").syncBuiltinESMExports(); // for `import { randomUUID } from "crypto"`

// sfc32 (https://pracrand.sourceforge.net), seeded from the stream
const state = new Uint32Array(4);
for (let i = 0; i < 4; i++) state[i] = bytesOf(nextDraw(), 4).readUInt32BE();
function next32() {
  const sum = (state[0] + state[1] + state[3]++) >>> 0;
  state[0] = state[1] ^ (state[1] >>> 9);
  state[1] = state[2] + (state[2] << 3);
  state[2] = ((state[2] << 21) | (state[2] >>> 11)) + sum;
  return sum;
}
Math.random = function random() {
  return ((next32() >>> 5) * 0x4000000 + (next32() >>> 6)) / 0x20000000000000;
};
