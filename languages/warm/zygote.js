// Turns a started Node into a server of copies of itself, and returns in each of them whether its program waits already. Given
// what to rehearse first.
// argv: what the copies expect, then the zygote library. Descriptors: 0 to 4 are open, 3 is the warden's socket, 1 and 2
// are pipes, as a program's are.
(rehearse) => {
  'use strict';
  const addon = { exports: {} };
  process.dlopen(addon, process.argv.pop());
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
  const { argv } = process, { console } = globalThis;
  const stderr = Object.getOwnPropertyDescriptor(process, 'stderr');
  process.chdir('/tmp');
  for (let round = 0; round < 3; round++) {
    process.argv = [argv[0], '/dev/null'];
    Module.runMain();
    process.argv = argv;
    delete Module._cache['/dev/null'];
    const streams = [1, 2].map(streamLike);
    Object.defineProperty(process, 'stderr', { value: streams[1], configurable: true }); // Node itself looks at it
    if (streams.every(Boolean)) {
      globalThis.console = new console.Console(...streams); // the usual one would keep these streams
      rehearse();
      globalThis.console = console;
    }
    streams.forEach((stream) => stream && stream.destroy());
    Object.defineProperty(process, 'stderr', stderr);
    process._tickCallback(); // nothing of it may be left for the copies to do
  }
  for (const key of Object.keys(Module._pathCache)) delete Module._pathCache[key];
  delete process.mainModule;

  const pid = fork(3, Math.random);

  // Node looked these up when it started.
  process.chdir('.');
  Object.defineProperty(process, 'pid', { value: Math.abs(pid), enumerable: true, configurable: true });
  return pid < 0;
}
