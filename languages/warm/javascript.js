// Waits in a started Node.js for a program. Its argument is the script of the manifest's run_code, which a program given as
// code runs by; one given as files runs as by `node ENTRY ARGS`. `copy`, if there is one, returns in every copy of the process,
// and true where there is no time to rehearse.
(copy) => {
  'use strict';
  const fs = require('fs'), path = require('path');
  const Module = require('module');
  const channel = 4;
  const prepareCode = (0, eval)(process.argv[1].replace(/\(process\.argv\[1\]\)\(\)\s*$/, '//# sourceURL=[eval]'));
  const buffer = Buffer.alloc(1 << 17);
  // What comes with a program that has neither arguments nor variables: but for the length of its source, and that itself.
  const file = 'main.js', usualLengths = '4 7 1 1 1 7 3 ', usualItems = 'codemain.js001main.js644';
  let placed; // that file, open ahead and empty

  // In a block, because a script's own names would stay.
  const program = `{
    const f = (x) => [...x].map((y) => ({ y })); class A { a = f('ab'); }
    console.log('%s', JSON.stringify({ a: [1.5, 'b', null] }), 1, new A(), 'text'); console.error('text');
  }`;

  // Makes ready for a program given as code. Gives what runs it, and what takes everything back.
  const prepare = (name) => {
    const { execArgv, emitWarning } = process;
    const names = ['require', 'module', 'exports', '__filename', '__dirname'];
    const kept = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
    process.execArgv = [...execArgv];
    const run = prepareCode(name);
    const undo = () => {
      process.removeAllListeners('uncaughtExceptionMonitor');
      Object.assign(process, { execArgv, emitWarning });
      names.forEach((name, index) => kept[index] ? Object.defineProperty(globalThis, name, kept[index]) : delete globalThis[name]);
      delete process.mainModule;
    };
    return { run, undo };
  };

  // A dry run of the way a program takes, so that what it needs is loaded, compiled and in memory before one comes. What it
  // changed is put back. Nothing may wait for a tick, because that shows in the program's stacks.
  const dryRun = () => {
    const { argv } = process;
    const { run, undo } = prepare(file);
    unpackNext('4 7 1 1 6 1 7 3 1\ncodewarm.js01WARM=11warm.js644;');
    const { entry, args } = unpackNext(`${usualLengths}${program.length}\n${usualItems}${program}`);
    process.argv = [argv[0], entry, ...args];
    run();
    new Module('/warm.js')._compile('exports.a = 1;', '/warm.js');
    fs.unlinkSync('warm.js');
    fs.unlinkSync(entry);
    delete process.env.WARM;
    process.argv = argv;
    undo();
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

  const place = () => fs.openSync(file, 'w', 0o644);

  const receive = () => {
    fs.writeSync(channel, 'r');
    const length = fs.readSync(channel, buffer, 0, buffer.length, null);
    fs.closeSync(channel);
    if (length === 0) process.reallyExit(0);
    return length;
  };

  const unpack = (length) => {
    const head = buffer.latin1Slice(0, 64), first = head.indexOf('\n') + 1;
    if (head.startsWith(usualLengths) && head.startsWith(usualItems, first)) {
      placed ??= place();
      for (let at = first + usualItems.length; at < length;) at += fs.writeSync(placed, buffer, at, length - at);
      fs.closeSync(placed);
      placed = undefined;
      return { kind: 'code', entry: file, args: [] };
    }
    if (placed !== undefined) {
      fs.closeSync(placed);
      fs.unlinkSync(file);
    }
    return unpackItems();
  };

  const unpackNext = (message) => unpack(buffer.latin1Write(message));

  const unpackItems = () => {
    let at = buffer.indexOf(10) + 1, next = 0;
    const lengths = buffer.latin1Slice(0, at - 1).split(' ');
    const item = () => buffer.subarray(at, at += Number(lengths[next++]));
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

  if (!copy || !copy(rehearse)) {
    rehearse();
    placed = place();
  }
  const { run, undo } = prepare(file);
  const { kind, entry, args } = unpack(receive());
  process.argv.splice(1, process.argv.length, entry, ...args);
  if (kind === 'code' && entry === file) return run();
  undo();
  if (kind === 'code') prepare(entry).run();
  else runFile(path.resolve(entry));
}
