import sys

# This folder comes first, and has a file of the package's name.
sys.path.append(sys.path.pop(0))

import pottery
import redis

from protocol import addresses, serve


class Driver:
    def __init__(self):
        self.masters = {redis.Redis(host=h, port=p) for h, p in addresses()}

    def acquire(self, name, ms):
        lock = pottery.Redlock(key=name, masters=self.masters, auto_release_time=ms / 1000)
        if not lock.acquire(blocking=False):
            return "held"
        self.lock = lock
        return "ok"

    def extend(self, ms):
        try:
            self.lock.extend()
            return "ok"
        except (pottery.ExtendUnlockedLock, pottery.TooManyExtensions):
            return "lost"

    def release(self):
        try:
            self.lock.release()
            return "ok"
        except pottery.ReleaseUnlockedLock:
            return "lost"


serve("pottery", Driver())
