"""Waits in a started Python for a program and runs it as `python3 ENTRY ARGS` would.

argv: the modules to load, joined by commas; then, in a process that forks the waiting ones, "zygote" and the path of the
library that does it. What cannot be done here exactly as by the interpreter itself is left to a new one.
"""
import _signal
import atexit
import gc
import os
import sys
from _weakref import ref
from importlib.machinery import SourceFileLoader
from io import StringIO
from types import FunctionType, ModuleType

CHANNEL = 4
BUFFER = bytearray(1 << 17)
FOLDER = os.getcwd()
FRESH = {name: value for name, value in globals().items() if name[:2] == "__"}
ENDED = {"path", "argv", "ps1", "ps2", "last_exc", "last_type", "last_value", "last_traceback", "path_hooks",
         "path_importer_cache", "meta_path", "__interactivehook__"}


class Program:
    """What is known of the program once it came."""
    code = None  # its compiled module
    main = None  # the module it runs as
    status = 0
    exited = interrupted = False


# Before the program


def preload(names):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in filter(None, names.split(",")):
            try:
                __import__(name)
            except Exception:
                pass
    threading = sys.modules.get("threading")
    for thread in threading.enumerate() if threading else ():
        if thread is not threading.main_thread():
            thread.join(5)


def reseed():
    """No two programs share a sequence: a forked process has its parent's generators."""
    modules = sys.modules
    if "random" in modules:
        modules["random"].seed()
    if "numpy.random" in modules:
        modules["numpy.random"].seed()
    if "tempfile" in modules:
        modules["tempfile"]._name_sequence = modules["tempfile"].tempdir = None
    if "uuid" in modules:
        modules["uuid"]._node = modules["uuid"]._last_timestamp = None


def items(message):
    start = BUFFER.index(b"\n") + 1
    for length in map(int, BUFFER[:start].split()):
        yield message[start:start + length]
        start += length


def receive():
    os.write(CHANNEL, b"r")
    length = os.readv(CHANNEL, [BUFFER])
    os.close(CHANNEL)
    if length == 0:
        os._exit(0)
    return memoryview(BUFFER)[:length]


def write(path, mode, content):
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    while content:
        content = content[os.write(fd, content):]
    os.close(fd)


def unpack(message):
    """Writes the files and sets the environment. The entry, its source if it came along, and the arguments."""
    following = items(message)
    text = lambda: os.fsdecode(bytes(next(following)))
    number = lambda: int(bytes(next(following)))
    source = None
    next(following)  # the kind: both run alike
    entry = text()
    arguments = [text() for _ in range(number())]
    for _ in range(number()):
        name, _, value = text().partition("=")
        os.environ[name] = value
    for _ in range(number()):
        path, mode, content = text(), int(bytes(next(following)), 8), next(following)
        write(path, mode, content)
        if path == entry:
            source = bytes(content)
    return entry, source, arguments


def compiled(path, source):
    """The code, or None where only the interpreter itself can say what is wrong with it."""
    if source is None:
        return None
    real, sys.stderr = sys.stderr, StringIO()
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except Exception:
        code = None
    finally:
        warnings, sys.stderr = sys.stderr, real
    if code and warnings.tell():
        sys.stderr.write(warnings.getvalue())
    return code


def become(entry, source, arguments):
    """Makes this process what it would be at the first instruction of the program."""
    path = os.path.join(FOLDER, entry) if sys.version_info >= (3, 9) else entry
    command = [getattr(sys, "orig_argv", ["python3"])[0], entry, *arguments]
    Program.code = compiled(path, source)
    if Program.code is None:
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        os.execv(sys.executable, command)
    sys.argv = command[1:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = command
    sys.path.insert(0, os.path.dirname(os.path.realpath(entry)) if "/" in entry else FOLDER)
    Program.main = sys.modules["__main__"] = ModuleType("__main__")
    names = Program.main.__dict__
    names.update(FRESH, __loader__=SourceFileLoader("__main__", path), __file__=path, __cached__=None)
    if "__annotations__" in names:
        names["__annotations__"] = {}


# After the program


def unraisable(error, where, when):
    """Tells of an error as the interpreter does where nobody can catch it."""
    error.__context__ = None
    hook, seen = sys.unraisablehook, []
    sys.unraisablehook = seen.append
    First.__del__ = staticmethod(next)  # fails, which shows the type of the hook's argument
    First()
    sys.unraisablehook = hook
    message, where = (f"Exception ignored {when}", None) if sys.version_info >= (3, 13) else (None, where)
    hook(type(seen[0])((type(error), error, error.__traceback__, message, where)))


def flush(file, tell):
    """Whether it could be done."""
    try:
        if file is not None and not getattr(file, "closed", False):
            file.flush()
    except BaseException as error:
        if tell:
            unraisable(error.with_traceback(None), file, "on flushing sys.stdout")
        return False
    return True


def flush_both(tell=False):
    done = flush(getattr(sys, "stdout", None), tell)
    return flush(getattr(sys, "stderr", None), False) and done


def exit_status(code):
    """What sys.exit(code) makes of it."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255 if -1 << 63 <= code < 1 << 63 else 255
    print(code, file=sys.stderr, flush=True)
    return 1


def show(kind, value, trace):
    """sys.excepthook, and what is said when there is none or it fails."""
    try:
        hook = sys.excepthook
    except AttributeError:
        sys.stderr.write("sys.excepthook is missing\n")
        hook = sys.__excepthook__
    try:
        hook(kind, value, trace)
    except SystemExit as error:
        Program.status = exit_status(error.code)
    except BaseException as error:
        error.__context__ = None
        error.__traceback__ = error.__traceback__.tb_next
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(kind, value, trace)


def failed(unraised):
    """sys.unraisablehook: what leaves the program comes here too, because nothing in Python called it."""
    kind, value, trace = unraised.exc_type, unraised.exc_value, unraised.exc_traceback
    if trace is None or trace.tb_frame.f_code is not Program.code:
        return sys.__unraisablehook__(unraised)
    flush_both()
    if issubclass(kind, SystemExit):
        Program.exited = True
        Program.status = exit_status(value.code)
        return None
    Program.status = 1
    Program.interrupted = kind is KeyboardInterrupt
    sys.last_type, sys.last_value, sys.last_traceback = kind, value, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = value
    show(kind, value, trace)
    return None


def clear(module):
    """A module that something still holds: its private names go first, as at the interpreter's own end."""
    names = module.__dict__
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (not private or name[:1] == "_" != name[1:2]):
                names[name] = None


def own_modules():
    return [(name, ref(module)) for name, module in sys.modules.items()
            if LOADED.get(name) is not module and isinstance(module, ModuleType)]


def unload():
    """Ends the program's modules, so that its objects are finalized. Those loaded before it have nothing to finalize."""
    del First.__del__
    gc.collect()
    own = own_modules()
    for name in ENDED.intersection(sys.__dict__):
        setattr(sys, name, None)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    Program.main = None
    for name, _ in own:
        sys.modules[name] = None
    sys.modules.clear()
    gc.collect()
    for _, module in reversed(own):
        if module() is not None:
            clear(module())


def finish():
    """The end of the interpreter, but for what only frees memory."""
    modules = sys.modules
    if not Program.exited:
        for name in ("__file__", "__cached__"):
            Program.main.__dict__.pop(name, None)
    if "threading" in modules:
        try:
            modules["threading"]._shutdown()
        except BaseException as error:
            unraisable(error.with_traceback(error.__traceback__.tb_next), modules["threading"], "on threading shutdown")
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass
    done = flush_both(True)
    flush_c = __import__("ctypes").pythonapi.fflush if "_ctypes" in modules or "_cffi_backend" in modules else None
    unload()
    done = flush_both(True) and done
    if flush_c:
        flush_c(None)
    if Program.interrupted:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGINT)
    os._exit(Program.status if done else 120)


# The program is to be called by nothing in Python, as in an interpreter of its own: with no frame beneath it in tracebacks
# and none off its recursion limit. A finalizer that runs when the interpreter lets go of an exception is called so.


class First:
    """Its finalizer becomes the program."""
    __slots__ = ()


class Last:
    __slots__ = ()

    def __del__(self):
        try:
            finish()
        finally:
            os._exit(1)


class Start(Exception):
    pass


def started(kind, value, trace):
    """sys.excepthook for Start: nothing is shown, nothing stays."""
    sys.excepthook = sys.__excepthook__
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)


REHEARSAL = """import json, re
def f(x):
    return x + 1
class C:
    def __init__(self):
        self.a = [f(i) for i in range(3)]
d = {"a": C().a, "b": 1.5}
try:
    d["c"]
except KeyError as e:
    s = f"{e!r:>10} {d}"
json.loads(json.dumps(d))
print(end="", flush=True)
d["c"]
"""


def rehearse():
    """Goes the way of a program once, so that the memory it takes is there and private before anybody waits."""
    kept = {name: getattr(sys, name) for name in ("argv", "orig_argv", "stderr", "unraisablehook") if hasattr(sys, name)}
    main, variable = sys.modules["__main__"], "=".join(next(iter(os.environ.items())))
    parts = ["code", "/dev/null", "1", "-", "1", variable, "1", "/dev/null", "644", REHEARSAL]
    message = f"{' '.join(str(len(os.fsencode(part))) for part in parts)}\n{''.join(parts)}".encode(errors="surrogateescape")
    BUFFER[:len(message)] = message
    become(*unpack(memoryview(BUFFER)[:len(message)]))
    First.__del__ = staticmethod(FunctionType(Program.code, Program.main.__dict__))
    sys.stderr, sys.unraisablehook = StringIO(), failed
    try:
        exec(compile("raise Start([First()])", "", "exec"))
    except Start:
        pass
    started(None, None, None)
    own_modules()
    ENDED.intersection(sys.__dict__)
    del First.__del__, sys.path[0]
    sys.__dict__.update(kept)
    sys.modules["__main__"] = main
    sys.stderr.write("")
    Program.code = Program.main = None
    Program.status = 0
    gc.collect()
    gc.freeze()


def standard_streams():
    """Opened again as at the start of an interpreter: the process that was forked had others."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        buffered = fd == 0 or hasattr(old.buffer, "raw")
        stream = open(fd, "wb" if fd else "rb", -1 if buffered else 0, closefd=False)
        raw = stream.raw if buffered else stream
        raw.name = f"<{name}>"
        text = type(old)(stream, old.encoding, old.errors, "\n", buffered and (fd == 2 or raw.isatty()), not buffered)
        text.mode = "w" if fd else "r"
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def fork_on_demand(library):
    """Stays here for good and lets each child go on as a waiting process."""
    import ctypes
    serve = ctypes.PyDLL(library).cordon_zygote_serve
    ctypes.pythonapi.PyOS_BeforeFork()
    if serve(3):
        os._exit(0)
    ctypes.pythonapi.PyOS_AfterFork_Child()
    standard_streams()


zygote = sys.argv[2:3] == ["zygote"]
threads = os.environ.get("OPENBLAS_NUM_THREADS") if zygote else None
del sys.path[0]
if threads:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read once, when the library is loaded, which else starts threads
preload(sys.argv[1])
if threads:
    os.environ["OPENBLAS_NUM_THREADS"] = threads
LOADED = dict(sys.modules)
del LOADED["__main__"]
if zygote:
    rehearse()
    fork_on_demand(sys.argv[3])
rehearse()
reseed()
become(*unpack(receive()))
First.__del__ = staticmethod(FunctionType(Program.code, Program.main.__dict__))
sys.unraisablehook, sys.excepthook = failed, started
raise Start([Last(), First()])
