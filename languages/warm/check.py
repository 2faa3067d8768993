"""Run in a process forked off a zygote: whether what programs ask of Python works there. Ends with 0, or with what does not."""
import json
import os
import random
import socket
import subprocess
import tempfile
import threading

ready = threading.Event()
thread = threading.Thread(target=ready.set)
thread.start()
thread.join(5)
assert ready.is_set() and threading.main_thread().ident == threading.get_ident()
assert threading.active_count() == 1
assert random.random() != random.Random(0).random()
assert json.loads(json.dumps({"a": [1, 2.5, None]})) == {"a": [1, 2.5, None]}
assert subprocess.run(["sh", "-c", "cat; exit 3"], input=b"text", capture_output=True, check=False).stdout == b"text"
with tempfile.TemporaryFile() as file:
    file.write(b"text")
one, other = socket.socketpair()
one.send(b"text")
assert other.recv(9) == b"text"
child = os.fork()
if child == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
