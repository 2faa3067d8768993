# threat: 1.9-monkeypatch
# attack: replace the functions with which a runner inside the interpreter would report
# expect: status=nonzero_exit; exit=4
import atexit
import builtins
import json
import os
import sys

real_exit, real_print = os._exit, print
json.dumps = lambda *_args, **_kw: '{"status":"ok"}'
sys.exit = lambda *_args: real_exit(4)
sys.excepthook = lambda *_args: real_exit(4)
builtins.print = lambda *_args, **_kw: None
atexit.register(lambda: real_exit(4))
for name in ("write", "read", "waitpid", "kill"):
    setattr(os, name, lambda *_args: 0)
real_print("held", flush=True)
raise SystemExit(0)
