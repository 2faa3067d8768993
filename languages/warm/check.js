// Run in a copy of a zygote: whether everything a program may ask of Node works there. Prints "ok" and ends with 0, or
// prints what does not work and ends with 1. What hangs is left behind after five seconds.
'use strict';
const assert = require('assert');

const checks = {
  timers: () => new Promise((done) => setTimeout(() => setImmediate(() => process.nextTick(done)), 2)),
  interval: () => new Promise((done) => { const timer = setInterval(() => { clearInterval(timer); done(); }, 1); }),
  microtasks: async () => { await null; await new Promise((done) => queueMicrotask(done)); },
  fs: async () => {
    const fs = require('fs').promises;
    await fs.writeFile('zygote-check', 'text');
    assert.equal(await fs.readFile('zygote-check', 'utf8'), 'text');
    await fs.unlink('zygote-check');
  },
  threadPool: async () => {
    const { promisify } = require('util'), crypto = require('crypto'), zlib = require('zlib');
    const jobs = [1, 2, 3, 4, 5, 6].map((i) => promisify(crypto.pbkdf2)('secret', String(i), 100, 16, 'sha256'));
    assert.equal(new Set((await Promise.all(jobs)).map(String)).size, 6);
    assert.equal(String(await promisify(zlib.gunzip)(await promisify(zlib.gzip)('text'))), 'text');
  },
  random: () => {
    const crypto = require('crypto');
    assert.notEqual(crypto.randomUUID(), crypto.randomUUID());
    assert.equal(new Set([crypto.randomBytes(16), crypto.randomBytes(16), crypto.randomInt(2 ** 40)].map(String)).size, 3);
    assert.notEqual(Math.random(), Math.random());
  },
  childProcess: async () => {
    const child = require('child_process');
    assert.equal(child.spawnSync('sh', ['-c', 'cat; exit 3'], { input: 'text' }).status, 3);
    const cat = child.spawn('cat');
    cat.stdin.end('text');
    let text = '';
    for await (const part of cat.stdout) text += part;
    assert.equal(text, 'text');
  },
  signals: () => new Promise((done) => {
    const timer = setTimeout(() => {}, 4000);
    process.once('SIGUSR2', () => { clearTimeout(timer); done(); });
    process.kill(process.pid, 'SIGUSR2');
  }),
  worker: () => new Promise((done, failed) => {
    const { Worker } = require('worker_threads');
    const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true });
    let answer;
    worker.once('message', (value) => { answer = value; });
    worker.once('error', failed);
    worker.once('exit', (code) => code === 0 && answer === 42 ? done() : failed(new Error(`exit ${code}`)));
  }),
  http: () => new Promise((done, failed) => {
    const http = require('http');
    const server = http.createServer((request, response) => response.end(request.url)).listen(0, '127.0.0.1', () => {
      http.get({ port: server.address().port, host: '127.0.0.1', path: '/text', agent: false }, async (response) => {
        let text = '';
        for await (const part of response) text += part;
        server.close(() => text === '/text' ? done() : failed(new Error(text)));
      }).on('error', failed);
    });
  }),
  lookup: async () => assert.match((await require('dns').promises.lookup('localhost')).address, /^(127\.|::1$)/),
  modules: async () => {
    const { value } = await import('data:text/javascript,export const value = 42');
    assert.equal(value, 42);
    assert.equal((await import('fs')).existsSync('/'), true);
  },
  intl: () => assert.equal(new Intl.NumberFormat('en').format(1234.5), '1,234.5'),
  collection: () => {
    let kept = [];
    for (let i = 0; i < 400000; i++) {
      kept.push({ i, text: 'x' + i });
      if (kept.length > 100000) kept = kept.slice(50000);
    }
    assert.equal(kept[kept.length - 1].i, 399999);
  },
  optimizer: () => {
    const sum = (n) => { let s = 0; for (let i = 0; i < n; i++) s = (s + i * i) % 1000003; return s; };
    let last = 0;
    for (let i = 0; i < 300; i++) last = sum(10000);
    assert.equal(last, sum(10000));
  },
  wasm: async () => {
    // (module (func (export "f") (result i32) i32.const 42))
    const code = Buffer.from('0061736d010000000105016000017f03020100070501016600000a06010400412a0b', 'hex');
    assert.equal(new WebAssembly.Instance(new WebAssembly.Module(code)).exports.f(), 42);
    assert.equal((await WebAssembly.instantiate(code)).instance.exports.f(), 42);
    assert.equal((await WebAssembly.instantiate(await WebAssembly.compile(code))).exports.f(), 42);
  },
  waitAsync: async () => {
    if (!Atomics.waitAsync) return;
    assert.equal(await Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2).value, 'timed-out');
  },
  process: () => {
    assert.equal(process.pid, +require('fs').readlinkSync('/proc/self'));
    assert.equal(process.cwd(), require('fs').realpathSync('.'));
  },
};

(async () => {
  const late = setTimeout(() => { console.log(`does not end: ${running}`); process.exit(1); }, 5000);
  let running;
  const failed = [];
  for (const [name, check] of Object.entries(checks)) {
    running = name;
    try { await check(); } catch (error) { failed.push(`${name}: ${error.message}`); }
  }
  clearTimeout(late);
  console.log(failed.join('\n') || 'ok');
  process.exitCode = failed.length ? 1 : 0;
})();
