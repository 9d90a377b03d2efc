from redlock import Redlock

from protocol import addresses, serve


class Driver:
    def __init__(self):
        self.manager = Redlock([{"host": h, "port": p} for h, p in addresses()], retry_count=1, retry_delay=0.001)

    def acquire(self, name, ms):
        lock = self.manager.lock(name, ms)
        if not lock:
            return "held"
        self.lock = lock
        return "ok"

    def extend(self, ms):
        return "cannot"

    def release(self):
        self.manager.unlock(self.lock)
        return "ok"


serve("redlock-py", Driver())
