<?php
// Takes orders, one a line, and answers each with one line; see drive/drive.go.

/** Has lock, an object with acquire, extend and release, carry out orders. */
function serve(string $version, object $lock): void
{
    fwrite(STDOUT, "ready $version\n");
    while (($line = fgets(STDIN)) !== false) {
        $order = explode(' ', trim($line));
        try {
            $said = match ($order[0]) {
                'acquire' => $lock->acquire($order[1], (int) $order[2]),
                'extend' => $lock->extend((int) $order[1]),
                'release' => $lock->release(),
            };
        } catch (\Throwable $e) {
            $said = 'error ' . preg_replace('/\s+/', ' ', get_class($e) . ': ' . $e->getMessage());
        }
        fwrite(STDOUT, "$said\n");
    }
}

/** The servers on the command line, as [host, port]. */
function addresses(): array
{
    global $argv;

    return array_map(fn ($a) => explode(':', $a), array_slice($argv, 1));
}

/** The version of an installed package, without what the distribution adds. */
function version(string $package): string
{
    return preg_replace('/[+~-].*$/', '', trim(shell_exec('dpkg-query -W -f \'${Version}\' ' . $package) ?: 'unknown'));
}
