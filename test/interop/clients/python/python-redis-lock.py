import redis
import redis_lock

from protocol import addresses, serve


class Driver:
    def __init__(self):
        host, port = addresses()[0]
        self.client = redis.StrictRedis(host=host, port=port)

    def acquire(self, name, ms):
        lock = redis_lock.Lock(self.client, name, expire=ms // 1000)
        if not lock.acquire(blocking=False):
            return "held"
        self.lock = lock
        return "ok"

    def extend(self, ms):
        try:
            self.lock.extend(ms // 1000)
            return "ok"
        except (redis_lock.NotAcquired, redis_lock.NotExpirable):
            return "lost"

    def release(self):
        try:
            self.lock.release()
            return "ok"
        except redis_lock.NotAcquired:
            return "lost"


serve("python-redis-lock", Driver())
