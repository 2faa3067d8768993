"""Waits in a started Python for a program and runs it as `python3 ENTRY ARGS` would.

argv: the modules to load, joined by commas; then, in a process that forks the waiting ones, "zygote" and the path of the
library by which it does so.
"""
import atexit
import gc
import marshal
import os
import sys
from _io import _IOBase as IOBase
from importlib.machinery import SourceFileLoader
from itertools import islice
from types import FunctionType, ModuleType

CHANNEL = 4
GAPS_BYTES = 1 << 18  # of a size, at most: not every build of Python has pools
MESSAGE = bytearray(1 << 17)  # one for all: what a program allocates lies where it lay in the rehearsal
BUILTINS = __builtins__


def preload(names):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in filter(None, names.split(",")):
            try:
                __import__(name)
            except Exception:
                pass


filling = []


def fill_gaps():
    """Gives out what is free in the memory in use, so that what is made next lies together: each page that a child writes
    to is copied for it. The first block of a new pool tells that the gaps of its size are filled."""
    for size in range(512, 15, -16):
        for i in range(GAPS_BYTES // size):
            filling.append(bytes(size - 33) if size > 33 else i + .5 if size > 16 else object())
            if id(filling[-1]) & 0x3fff == 48:
                break
    bytes(100000)  # makes malloc sort what is free, which it would do in each child


def write_anew():
    """The code of this file, which every child runs."""
    for value in list(globals().values()):
        if isinstance(value, FunctionType):
            value.__code__ = marshal.loads(marshal.dumps(value.__code__))


def fork_on_demand():
    """Stays here for good and lets each child go on as a waiting process."""
    os.chdir("/tmp")
    fill_gaps()
    write_anew()
    for _ in range(20):  # what adapts to its use does so here, and not in each child again
        rehearse()
    gc.collect()
    fill_gaps()
    gc.freeze()
    del os.environ["LD_PRELOAD"], os.environ["LD_BIND_NOW"]
    if os.fork():  # the library's: it returns in children only, and then `random` is seeded as after any fork
        os._exit(1)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


REHEARSAL = b"""def f(x):
    return [x]
s = f"{f(1)} {1.5}"
print(s, "warm")
try:
    {}[s]
except KeyError:
    pass
"""


def rehearse():
    """Goes the way of a program to its end, so that the memory it takes is there and private before anybody waits."""
    kept = sys.argv[:], getattr(sys, "orig_argv", [])[:], sys.path[0]
    main = sys.modules["__main__"]
    entry, source, arguments = unpack(b"%b%d\n%b%b" % (USUAL_LENGTHS, len(REHEARSAL), USUAL_ITEMS, REHEARSAL))
    module, path = become(entry, arguments)
    null, out = os.open("/dev/null", os.O_WRONLY), os.dup(1)
    os.dup2(null, 1)
    MESSAGE[0] = 0
    run(module, path, source)
    held = [module]
    module = None
    finish(held, path, len(sys.modules), False)
    os.dup2(out, 1)
    os.close(null)
    os.close(out)
    os.unlink(path)
    sys.modules["__main__"] = main
    sys.argv[:], sys.path[0] = kept[0], kept[2]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = kept[1]


FILE = "main.py"
placed = None  # it is open already, empty: to make one takes longer than to fill it


def place():
    global placed
    placed = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)


def unplace():
    if placed is not None:
        os.close(placed)
        os.unlink(FILE)


def write(path, mode, content):
    global placed
    if placed is not None and path == FILE:
        fd, placed = placed, None
        if mode != 0o644:
            os.fchmod(fd, mode)
    else:
        if "/" in path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    while content:
        content = content[os.write(fd, content):]
    os.close(fd)


def receive():
    os.set_blocking(CHANNEL, False)
    try:
        length = os.readv(CHANNEL, [MESSAGE])
    except BlockingIOError:
        rehearse()
        place()
        prepare_usual()
        bytes(MESSAGE[:len(REHEARSAL)])
        compile(REHEARSAL, USUAL, "exec", dont_inherit=True)  # where it lies from now on
        os.set_blocking(CHANNEL, True)
        os.write(CHANNEL, b"r")
        length = os.readv(CHANNEL, [MESSAGE])
    os.close(CHANNEL)
    if not length:
        os._exit(0)
    return bytes(MESSAGE[:length])


# Of a program without arguments or variables, but for the length of its source and that itself.
USUAL_LENGTHS = b"4 7 1 1 1 7 3 "
USUAL_ITEMS = b"codemain.py001main.py644"


def unpack(message):
    """The program: entry, its source if it came along, arguments. Files are written and variables set."""
    lengths, _, rest = message.partition(b"\n")
    if rest.startswith(USUAL_ITEMS) and lengths.startswith(USUAL_LENGTHS):
        source = rest[len(USUAL_ITEMS):]
        write(FILE, 0o644, source)
        return FILE, source, []
    at, items = 0, []
    for length in map(int, lengths.split()):
        items.append(rest[at:at + length])
        at += length
    items.reverse()
    items.pop()  # the kind: both run alike
    entry = os.fsdecode(items.pop())
    arguments = [os.fsdecode(items.pop()) for _ in range(int(items.pop()))]
    for _ in range(int(items.pop())):
        name, _, value = os.fsdecode(items.pop()).partition("=")
        os.environ[name] = value
    source = None
    for _ in range(int(items.pop())):
        path, mode, content = os.fsdecode(items.pop()), int(items.pop(), 8), items.pop()
        write(path, mode, content)
        if path == entry:
            source = content
    return entry, source, arguments


def module_for(path):
    main = ModuleType("__main__")
    main.__dict__.update(__loader__=SourceFileLoader("__main__", path), __annotations__={}, __builtins__=BUILTINS,
                         __file__=path, __cached__=None)
    return main


USUAL = "/work/main.py"
usual_main = None  # made before anybody waits


def prepare_usual():
    global usual_main
    if os.getcwd() == "/work":
        usual_main = module_for(USUAL)


def become(entry, arguments):
    """The module that the program runs as, and its path."""
    usual = usual_main and entry == FILE
    path = USUAL if usual else os.path.join(os.getcwd(), entry)
    main = sys.modules["__main__"] = usual_main if usual else module_for(path)
    sys.argv[:] = [entry, *arguments]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.orig_argv[0], entry, *arguments]
    sys.path[0] = path.rpartition("/")[0]
    return main, path


def exit_status(code):
    """What sys.exit(code) makes of it."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    flush()
    print(code, file=sys.stderr, flush=True)
    return 1


def flush_one(stream):
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except AttributeError:
        pass
    except BaseException:
        return False
    return True


def flush():
    done = flush_one(sys.stdout)
    return flush_one(sys.stderr) and done


def show(error):
    """As the interpreter shows what nothing caught; no line of this file is in it."""
    trace = error.__traceback__.tb_next
    flush()
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    error.__traceback__ = trace
    try:
        sys.excepthook(type(error), error, trace)
    except SystemExit as left:
        return exit_status(left.code)
    except BaseException as failed:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failed), failed, failed.__traceback__.tb_next)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)
    return 1


def run(main, path, source):
    """The program's exit status, and whether an interrupt ended it."""
    try:
        if source is None:
            with open(path, "rb") as file:
                source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as left:
        return exit_status(left.code), False
    except BaseException as error:
        return show(error), isinstance(error, KeyboardInterrupt)
    return 0, False


def release(module, path, loaded):
    """Lets go of a program's modules and finalizes what they held."""
    for value in list(module.__dict__.values()):  # what the collector would drop with a file that is part of a cycle
        if isinstance(value, IOBase):
            flush_one(value)
    folder, kept = path.rpartition("/")[0], []
    # Those that the program loaded came last; to list the others would make a copy of each one's page. A module may load
    # more when it is asked for an attribute, without end.
    for name, other in list(islice(reversed(sys.modules.items()), len(sys.modules) - loaded))[::-1]:
        sys.modules.pop(name, None)
        file = other.__dict__.get("__file__") if isinstance(other, ModuleType) else None
        if not (isinstance(file, str) and file.startswith(folder)):
            kept.append(other)
    module = value = other = None
    sys.modules.pop("__main__", None)
    gc.collect()


def finish(held, path, loaded, last):
    """The end of an interpreter, but for what only frees memory; whether all that was printed could be written. `held`
    has the program's module; `last`: nothing comes after it."""
    if last and "threading" in sys.modules:
        try:
            sys.modules["threading"]._shutdown()
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
    if atexit._ncallbacks() and last:
        atexit._run_exitfuncs()
    done = flush()
    if "last_value" in sys.__dict__:
        sys.last_type = sys.last_value = sys.last_traceback = None
    release(held.pop(), path, loaded)
    return flush() and done


def die_of_interrupt():
    import _signal
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGINT)


zygote = sys.argv[2:3] == ["zygote"]
if zygote and "LD_PRELOAD" not in os.environ:
    os.execve(sys.executable, sys.orig_argv, {**os.environ, "LD_PRELOAD": sys.argv[3], "LD_BIND_NOW": "1"})
threads = os.environ.get("OPENBLAS_NUM_THREADS")
if zygote and threads:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read once, when the library is loaded, which else starts threads
preload(sys.argv[1])
if zygote and threads:
    os.environ["OPENBLAS_NUM_THREADS"] = threads
gc.collect()
gc.freeze()
if zygote:
    fork_on_demand()
LOADED = len(sys.modules)
prepare_usual()
entry = source = arguments = main = path = status = interrupted = held = None  # the names' memory, too
entry, source, arguments = unpack(receive())
unplace()
main, path = become(entry, arguments)
status, interrupted = run(main, path, source)
try:
    held = [main]
    main = usual_main = None
    if not finish(held, path, LOADED, True):
        status = 120
    if interrupted:
        die_of_interrupt()
finally:
    os._exit(status)
