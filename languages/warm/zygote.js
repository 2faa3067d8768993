// Turns a started Node into a server of copies of itself. The text that follows this one runs in each copy.
// argv: the zygote library, then what that text expects. Descriptors: 0 to 4 are open, 3 is the warden's socket, 1 and 2
// are pipes, as a program's are.
(() => {
  'use strict';
  const addon = { exports: {} };
  process.dlopen(addon, process.argv[1]);
  const { findRandom, findExitCode, fork } = addon.exports;
  const fs = require('fs'), net = require('net'), vm = require('vm'), Module = require('module');
  require('tty');
  if (!findRandom(() => vm.runInNewContext('Math.random()'))) process.exit(1);
  findExitCode(() => { process.exitCode = 0x5ca1ab1e; });
  process.exitCode = undefined;

  const streamLike = (fd) => {
    if (!fs.fstatSync(fd).isFIFO()) return null;
    try { fd = fs.openSync(`/proc/self/fd/${fd}`, 'w'); } catch { return null; }
    return new net.Socket({ fd, readable: false, writable: true });
  };

  // What every program needs is loaded and compiled here, once, on streams like the standard ones: those themselves are
  // not touched, because that makes a descriptor non-blocking. Three rounds: more would start the optimizer.
  const library = process.argv[1], stderr = Object.getOwnPropertyDescriptor(process, 'stderr');
  for (let round = 0; round < 3; round++) {
    process.argv[1] = '/dev/null';
    Module.runMain();
    delete Module._cache['/dev/null'];
    const program = Object.assign(new Module('/dev/warm.js'), { filename: '/dev/warm.js' });
    program.paths = Module._nodeModulePaths('/dev');
    program._compile(`
      const fs = require('fs'); const a = [3, 1, 2].map((x) => x * 2).sort(); class A { b() { return a; } }
      module.exports = (console) => {
        console.log('%s', JSON.stringify({ a, b: new A().b() }), a, { a: 1, b: ['x'] }, 'text');
        console.error('text', 1.5);
      };`, '/dev/warm.js');
    const streams = [1, 2].map(streamLike);
    Object.defineProperty(process, 'stderr', { value: streams[1], configurable: true }); // Node itself looks at it
    if (streams.every(Boolean)) program.exports(new console.Console(...streams));
    streams.forEach((stream) => stream && stream.destroy());
    Object.defineProperty(process, 'stderr', stderr);
  }
  for (const key of Object.keys(Module._pathCache)) delete Module._pathCache[key];
  delete process.mainModule;

  const pid = fork(3, Math.random);

  // Node looked these up when it started.
  process.chdir('.');
  Object.defineProperty(process, 'pid', { value: pid, enumerable: true, configurable: true });
  process.argv[1] = library;
  process.argv.splice(1, 1);
})();
