import redis
from redis.exceptions import LockError, LockNotOwnedError

from protocol import addresses, serve


class Driver:
    def __init__(self):
        host, port = addresses()[0]
        self.client = redis.Redis(host=host, port=port)

    def acquire(self, name, ms):
        lock = self.client.lock(name, timeout=ms / 1000)
        if not lock.acquire(blocking=False):
            return "held"
        self.lock = lock
        return "ok"

    def extend(self, ms):
        try:
            self.lock.extend(ms / 1000, replace_ttl=True)
            return "ok"
        except (LockNotOwnedError, LockError):
            return "lost"

    def release(self):
        try:
            self.lock.release()
            return "ok"
        except (LockNotOwnedError, LockError):
            return "lost"


serve("redis", Driver())
