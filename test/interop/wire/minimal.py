"""An exclusive lock on Redis servers, by docs/wire.md alone.

It has what a client must have: acquire, extend and release on one server or a
majority of several, with a token. It has no queue, and notifies nobody. Used as
a program it executes orders, one a line; see test/interop/beside.
"""
import hashlib, pathlib, random, secrets, socket, sys, time

HERE = pathlib.Path(__file__).parent
ACQUIRE, EXTEND, RELEASE = ((HERE / f"{name}.lua").read_text() for name in ("acquire", "extend", "release"))
WINDOW, HOUR = 10_000_000, 3_600_000  # in µs, where there is no marker; in ms
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # counts while the machine sleeps


def clock():
    return time.clock_gettime(CLOCK)


class Server:
    """One server. A connection that failed, or has an answer due, is not used again."""

    def __init__(self, address):
        self.host, _, port = address.removeprefix("redis://").partition(":")
        self.port, self.stream = int(port), None

    def send(self, *args):
        """Sends a command."""
        try:
            if self.stream is None:
                self.stream = socket.create_connection((self.host, self.port), timeout=1).makefile("rwb")
            text = b"".join(b"$%d\r\n%b\r\n" % (len(a), a) for a in (str(a).encode() for a in args))
            self.stream.write(b"*%d\r\n%b" % (len(args), text))
            self.stream.flush()
        except OSError:
            self.stream = None

    def receive(self):
        """Returns the reply; None if there is none, or an error."""
        try:
            return self.stream and self.read()
        except (OSError, ValueError):
            self.stream = None

    def read(self):
        line = self.stream.readline()
        kind, rest = line[:1], line[1:].strip().decode()
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b"$":
            return self.stream.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
        if kind in (b"+", b":"):
            return rest
        if kind == b"-":
            return None  # it decides nothing, as if there were no reply
        raise ValueError("no reply")


class Client:
    def __init__(self, addresses):
        self.servers = [Server(a) for a in addresses]
        self.quorum = len(addresses) // 2 + 1
        self.list = hashlib.sha256(" ".join(sorted(addresses)).encode()).hexdigest()[:16]
        self.key, self.window = None, WINDOW

    def ask(self, script, keys, *args, servers=None):
        """Runs a script on all servers at once, or on some."""
        servers = self.servers if servers is None else servers
        for s in servers:
            s.send("EVAL", script, len(keys), *keys, *args)
        return [s.receive() for s in servers]

    def keys(self, marker=True):
        fence = f"redlatch:1:fence:{{{self.key}}}"  # for names without braces
        return [self.key, fence] + (["redlatch:1:marker"] if marker else [])

    def acquire(self, name, ttl):
        """Asks once. Returns whether the lock was acquired."""
        self.key, self.ttl = name, ttl
        self.value, self.token = secrets.token_hex(16), time.time_ns() // 1000
        for _ in range(8):
            start = clock()
            replies = self.ask(ACQUIRE, self.keys(), self.value, ttl, f"{self.token:020}", self.retention(),
                               self.window, self.list, int(len(self.servers) > 1))
            self.said = [r and r[0] for r in replies]
            if self.said.count("granted") >= self.quorum:
                self.deadline = start + (ttl - ttl / 100 - 2) / 1000
                if clock() < self.deadline:
                    return True
                break
            token = self.propose([r for r in replies if r])
            if token is None:
                break
            if token <= self.token:  # a request that is late must not be above it
                self.undo()
                self.key, self.value = name, secrets.token_hex(16)
            self.token = token
        self.undo()
        return False

    def propose(self, replies):
        """Returns the token to ask with next, if only the token was refused."""
        spans, clocks = [], []
        for status, fence, now, window in replies:
            if status in ("granted", "stale", "behind", "ahead"):
                fence, now, self.window = int(fence or 0), int(now), int(window)
                low = fence if status == "granted" else max(fence + 1, now - self.window)
                spans.append((low, max(now + self.window, fence + 1000)))
                clocks.append(now)
        # A server's time, or else the lowest that a quorum accepts.
        for token in sorted(clocks) + sorted(low for low, _ in spans):
            if token != self.token and sum(a <= token <= b for a, b in spans) >= self.quorum:
                return token

    def retention(self):
        return max(HOUR, 4 * self.window // 1000, self.ttl + self.window // 1000)

    def valid(self):
        return self.key is not None and clock() < self.deadline

    def extend(self):
        """Gives the lock its whole time to live again. Returns whether a quorum has."""
        start = clock()
        replies = self.ask(EXTEND, self.keys(), self.value, self.ttl, self.retention(), self.list)
        done = self.valid() and sum(r == "granted" for r in replies) >= self.quorum
        if done:
            self.deadline = start + (self.ttl - self.ttl / 100 - 2) / 1000
        return done

    def undo(self):
        """Releases the lock where it was granted, or may have been."""
        self.free([s for s, said in zip(self.servers, self.said) if said in (None, "granted")])

    def free(self, servers=None):
        replies = self.ask(RELEASE, self.keys(False), self.value, f"{self.token:020}", self.retention(),
                           self.window, servers=servers)
        self.key = None
        return sum(r == "granted" for r in replies) >= self.quorum


def serve(client):
    print("ready", flush=True)
    for order in (line.split() for line in sys.stdin):
        if order[0] == "acquire":
            end, got = clock() + int(order[3]) / 1000, False
            while not (got := client.acquire(order[1], int(order[2]))) and clock() < end:
                time.sleep(random.uniform(0.02, 0.1))  # it is not in the queue
            answer = f"ok {client.token}" if got else "held" if "held" in client.said else f"error {client.said}"
        else:
            act = {"extend": client.extend, "valid": client.valid, "release": client.free}[order[0]]
            answer = "ok" if act() else "lost"
        print(answer, flush=True)


if __name__ == "__main__":
    serve(Client(sys.argv[1:]))
