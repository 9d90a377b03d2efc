import sys

# This folder comes first, and has a file of the package's name.
sys.path.append(sys.path.pop(0))

import asyncio

from aioredlock import Aioredlock, LockError

from protocol import addresses, brief, orders, version


class Driver:
    def __init__(self):
        self.manager = Aioredlock([{"host": h, "port": p} for h, p in addresses()], retry_count=1)

    async def acquire(self, name, ms):
        try:
            self.lock = await self.manager.lock(name, lock_timeout=ms / 1000)
            return "ok"
        except LockError:
            return "held"

    async def extend(self, ms):
        try:
            await self.manager.extend(self.lock, lock_timeout=ms / 1000)
            return "ok"
        except LockError:
            return "lost"

    async def release(self):
        try:
            await self.manager.unlock(self.lock)
            return "ok"
        except LockError:
            return "lost"


async def main():
    driver = Driver()
    # A look at a lock connects, and so shows whether the client runs at all.
    await driver.manager.is_locked("probe")
    print("ready", version("aioredlock"), flush=True)
    loop = asyncio.get_running_loop()
    waiting = orders()
    while (order := await loop.run_in_executor(None, next, waiting, None)) is not None:
        verb, args = order
        try:
            print(await getattr(driver, verb)(*args), flush=True)
        except Exception as err:
            print("error", brief(err), flush=True)


asyncio.run(main())
