<?php
require __DIR__ . '/protocol.php';
require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';

use Illuminate\Cache\RedisStore;
use Illuminate\Contracts\Cache\Lock;
use Illuminate\Redis\RedisManager;

serve(version('php-illuminate-cache'), new class {
    private RedisStore $store;
    private Lock $lock;

    public function __construct()
    {
        [$host, $port] = addresses()[0];
        $redis = new RedisManager(null, 'phpredis', ['default' => ['host' => $host, 'port' => (int) $port, 'database' => 0]]);
        $this->store = new RedisStore($redis, '');
    }

    public function acquire(string $name, int $ms): string
    {
        $lock = $this->store->lock($name, intdiv($ms, 1000));
        if (!$lock->get()) {
            return 'held';
        }
        $this->lock = $lock;

        return 'ok';
    }

    public function extend(int $ms): string
    {
        return 'cannot';
    }

    public function release(): string
    {
        return $this->lock->release() ? 'ok' : 'lost';
    }
});
