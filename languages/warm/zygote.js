// Turns a started Node into a server of copies of itself, and returns in each of them whether its program waits already. Given
// what to rehearse first.
// argv: what the copies expect, then the zygote library. Descriptors: 0 to 4 are open, 3 is the warden's socket, 1 and 2
// are pipes, as a program's are.
(rehearse) => {
  'use strict';
  const addon = { exports: {} };
  process.dlopen(addon, process.argv.pop());
  const { findRandom, findExitCode, fork } = addon.exports;
  const vm = require('vm'), Module = require('module');
  if (!findRandom(() => vm.runInNewContext('Math.random()'))) process.exit(1);
  findExitCode(() => { process.exitCode = 0x5ca1ab1e; });
  process.exitCode = undefined;

  // What every program needs is loaded and compiled here, once, the standard streams included. After three rounds V8 makes
  // machine code of much of it, after five all of that is done; from eight on the optimizer would be at work in the copies.
  const { argv } = process;
  process.chdir('/tmp');
  for (let round = 0; round < 5; round++) {
    process.argv = [argv[0], '/dev/null'];
    Module.runMain();
    process.argv = argv;
    delete Module._cache['/dev/null'];
    rehearse();
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
