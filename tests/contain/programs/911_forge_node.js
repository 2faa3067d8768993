// threat: 1.9-monkeypatch
// attack: forge the result from inside a runtime that might share its process with a runner
// expect: status=nonzero_exit; exit=8
const leave = process.exit.bind(process);
require("fs").writeSync(1, "held\n");
JSON.stringify = () => '{"status":"ok","exit_code":0}';
globalThis.parseInt = () => 0;
process.stdout.write = () => true;
process.exit = () => undefined;
leave(8);
