<?php
require __DIR__ . '/protocol.php';
require 'Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\Lock;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\Lock\Strategy\ConsensusStrategy;

serve(version('php-symfony-lock'), new class {
    private array $clients;
    private Lock $lock;

    public function __construct()
    {
        foreach (addresses() as [$host, $port]) {
            $redis = new Redis();
            $redis->connect($host, (int) $port);
            $this->clients[] = $redis;
        }
    }

    public function acquire(string $name, int $ms): string
    {
        $stores = array_map(fn ($c) => new RedisStore($c), $this->clients);
        $store = count($stores) === 1 ? $stores[0] : new CombinedStore($stores, new ConsensusStrategy());
        $lock = new Lock(new Key($name), $store, $ms / 1000, false);
        if (!$lock->acquire()) {
            return 'held';
        }
        $this->lock = $lock;

        return 'ok';
    }

    public function extend(int $ms): string
    {
        try {
            $this->lock->refresh($ms / 1000);

            return 'ok';
        } catch (LockConflictedException) {
            return 'lost';
        }
    }

    public function release(): string
    {
        $this->lock->release();

        return 'ok';
    }
});
