"""Takes orders, one a line, and answers each with one line; see drive/drive.go."""
import sys


def brief(err):
    return " ".join(f"{type(err).__name__}: {err}".split())


def addresses():
    """The servers on the command line, as (host, port)."""
    return [(a.rsplit(":", 1)[0], int(a.rsplit(":", 1)[1])) for a in sys.argv[1:]]


def version(package):
    from importlib.metadata import version as of
    return of(package)


def orders():
    """Yields each order as its verb and arguments."""
    for line in sys.stdin:
        verb, *rest = line.split()
        yield verb, ([rest[0], int(rest[1])] if verb == "acquire" else [int(x) for x in rest])


def serve(package, lock):
    """lock has acquire(name, ms), extend(ms), release(); each returns its word."""
    print("ready", version(package), flush=True)
    for verb, args in orders():
        try:
            print(getattr(lock, verb)(*args), flush=True)
        except Exception as err:
            print("error", brief(err), flush=True)
