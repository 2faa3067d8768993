// Waits in a started Node.js for a program. Its argument is the script of the manifest's run_code, which a program given as
// code runs by; one given as files runs as by `node ENTRY ARGS`. `copy`, if there is one, returns in every copy of the process,
// and true where there is no time to rehearse.
(copy) => {
  'use strict';
  const fs = require('fs'), path = require('path');
  const Module = require('module');
  const channel = 4;
  const runCode = (0, eval)(process.argv[1].replace(/\(\)\s*$/, '//# sourceURL=[eval]'));
  const buffer = Buffer.alloc(1 << 17);

  // In a block, because a script's own names would stay.
  const program = `{
    const f = (x) => [...x].map((y) => ({ y })); class A { a = f('ab'); }
    console.log('%s', JSON.stringify({ a: [1.5, 'b', null] }), 1, new A(), 'text'); console.error('text');
  }`;

  // A dry run of the way a program takes, so that what it needs is loaded, compiled and in memory before one comes. What it
  // changed is put back. Nothing may wait for a tick, because that shows in the program's stacks.
  const dryRun = () => {
    const { argv, execArgv, emitWarning } = process;
    const names = ['require', 'module', 'exports', '__filename', '__dirname'];
    const kept = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
    const message = `4 7 1 1 6 1 7 3 ${program.length}\ncodewarm.js01WARM=11warm.js644${program}`;
    buffer.latin1Write(message);
    const { entry, args } = unpack(read());
    process.argv = [argv[0], entry, ...args];
    process.execArgv = [...execArgv];
    runCode();
    new Module('/warm.js')._compile('exports.a = 1;', '/warm.js');
    fs.unlinkSync(entry);
    delete process.env.WARM;
    process.removeAllListeners('uncaughtExceptionMonitor');
    Object.assign(process, { argv, execArgv, emitWarning });
    names.forEach((name, index) => kept[index] ? Object.defineProperty(globalThis, name, kept[index]) : delete globalThis[name]);
    delete process.mainModule;
  };

  // A dry run on the standard streams, which it must not write to: only the last step of writing is left out.
  const rehearse = () => {
    const streams = [process.stdout, process.stderr];
    const last = streams.map(({ _handle }) => _handle ? ['writeUtf8String', 'writeLatin1String'] : ['write']);
    const owners = streams.map((stream) => stream._handle || stream);
    owners.forEach((owner, index) => last[index].forEach((name) => { owner[name] = () => 0; }));
    dryRun();
    process._tickCallback();
    owners.forEach((owner, index) => last[index].forEach((name) => delete owner[name]));
    for (const stream of streams) {
      stream.write('');
      // To have been looked at made the descriptor non-blocking, and then a large fs.writeSync() to it fails.
      if (stream._handle && stream._handle.setBlocking) stream._handle.setBlocking(true);
    }
    process._tickCallback();
  };

  // Takes the items of a message one by one.
  const read = () => {
    let at = buffer.indexOf(10) + 1, next = 0;
    const lengths = buffer.latin1Slice(0, at - 1).split(' ');
    return () => buffer.subarray(at, at += Number(lengths[next++]));
  };

  const receive = () => {
    fs.writeSync(channel, 'r');
    const length = fs.readSync(channel, buffer, 0, buffer.length, null);
    fs.closeSync(channel);
    if (length === 0) process.reallyExit(0);
    return read();
  };

  const unpack = (item) => {
    const text = () => item().toString(), list = (each) => Array.from({ length: Number(text()) }, each);
    const kind = text(), entry = text(), args = list(text);
    list(() => {
      const [, name, value] = /^([^=]*)=([^]*)$/.exec(text());
      process.env[name] = value;
    });
    list(() => {
      const name = text(), mode = parseInt(text(), 8), content = item();
      if (name.includes('/')) fs.mkdirSync(path.dirname(name), { recursive: true });
      fs.writeFileSync(name, content, { mode });
    });
    return { kind, entry, args };
  };

  // Where a stack ends in a program that Node.js itself started.
  const lastFrame = () => {
    const source = process.binding('natives')['internal/main/run_main_module'];
    const before = source.slice(0, source.lastIndexOf('runMain(')).split('\n');
    return `\n    at node:internal/main/run_main_module:${before.length}:${before.pop().length + 1}`;
  };

  // Takes back what -e makes of the global object and of process.
  const forgetEval = () => {
    for (const name of Module.builtinModules) {
      const found = Object.getOwnPropertyDescriptor(globalThis, name);
      if (name !== 'process' && found && found.get && found.set && !found.enumerable) delete globalThis[name];
    }
    for (const name of ['module', 'exports', 'require', '__filename', '__dirname']) delete globalThis[name];
    delete process._eval;
    process.execArgv.splice(process.execArgv.indexOf('-e'), 2);
  };

  const runFile = (file) => {
    const last = lastFrame();
    forgetEval();
    process.on('uncaughtExceptionMonitor', (error) => {
      for (let depth = 0; error instanceof Error && depth < 100; error = error.cause, depth++) {
        try {
          error.stack = error.stack.replace(/(\n    at Function\.executeUserEntryPoint [^\n]*)\n    at process\.processImmediate [^\n]*/, `$1${last}`);
        } catch { }
      }
    });
    process.argv[1] = file;
    // Called from there the program has no frame of this script beneath it, and its ticks run as after any main module. By
    // then -e has put its `module` back.
    setImmediate(() => delete globalThis.module);
    setImmediate(Module.runMain.bind(Module, file));
  };

  if (!copy || !copy(rehearse)) rehearse();
  const { kind, entry, args } = unpack(receive());
  process.argv.splice(1, process.argv.length, entry, ...args);
  if (kind === 'code') runCode();
  else runFile(path.resolve(entry));
}
