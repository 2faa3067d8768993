// Runs test files with node:test and reports each test as a line of JSON. Arguments: the report, then the files.
'use strict';
const fs = require('fs'), path = require('path');
const [report, ...files] = process.argv.slice(2);
const out = fs.openSync(report, 'w');
const tell = (row) => fs.writeSync(out, JSON.stringify(row) + '\n');

let run;
try {
  ({ run } = require('node:test'));
} catch { }
if (!run || parseInt(process.versions.node) < 20) {
  tell({ missing: true });
  process.exit(3);
}

// The error of a failed test is what it threw, wrapped.
const message = (error) => {
  const cause = error && error.cause instanceof Error ? error.cause : error;
  const where = /\n +at .*?([^\/\s(]+:\d+):\d+\)?/.exec((cause && cause.stack) || '');
  return String((cause && (cause.message || cause)) || 'failed') + (where ? ` (${where[1]})` : '');
};

const whole = new Set(files.map((file) => path.resolve(file)));
// A file stands as a test of its own around its tests; it says something only when it could not be run.
const isWrapper = (event) => event.nesting === 0 && whole.has(path.resolve(event.name));
let failed = 0;
const names = [];

const note = (status) => (event) => {
  const { name, nesting, details = {} } = event;
  if (details.type === 'suite') return;
  const error = status === 'failed' ? details.error : undefined;
  if (isWrapper(event) && (status !== 'failed' || (error && error.failureType === 'subtestsFailed'))) return;
  if (error && error.failureType === 'subtestsFailed') return;
  const skipped = event.skip !== undefined || event.todo !== undefined;
  failed += status === 'failed' && !skipped;
  const full = [...names.slice(0, nesting).filter(Boolean), isWrapper(event) ? path.basename(name) : name].join(' > ');
  tell({ name: full, status: skipped ? 'skipped' : status, message: error ? message(error) : '', wall_ms: details.duration_ms });
};

const stream = run({ files: [...whole], concurrency: 1 });
stream.on('test:start', ({ name, nesting }) => { names[nesting] = name; });
stream.on('test:pass', note('passed'));
stream.on('test:fail', note('failed'));
stream.on('test:stdout', ({ message: text }) => process.stdout.write(text));
stream.on('test:stderr', ({ message: text }) => process.stderr.write(text));
stream.on('end', () => { process.exitCode = failed ? 1 : 0; });
stream.resume();
