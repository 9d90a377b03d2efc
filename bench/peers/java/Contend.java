import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Contenders that use Redisson: threads of one process, each with a client of
 * its own. What it reads and writes is in family/protocol.go.
 */
public class Contend {
    /** How to ask for a lock, and how to release it. */
    private interface Wanted {
        /** Returns null if there was none in time, else what release needs. */
        Object acquire(boolean write, long waitNanos) throws Exception;

        void release(Object held) throws Exception;
    }

    private final String peer;
    private final String[] addresses;
    private final int contenders, first, limit, writeEvery, held;
    private final long ttl;
    private final List<List<RedissonClient>> clients = new ArrayList<>();

    private Contend(String config) {
        peer = text(config, "peer");
        Matcher list = Pattern.compile("\"addresses\":\\[([^\\]]*)\\]").matcher(config);
        list.find();
        addresses = list.group(1).replace("\"", "").split(",");
        contenders = (int) number(config, "contenders");
        first = (int) number(config, "first");
        limit = (int) number(config, "limit");
        writeEvery = (int) number(config, "write_every");
        held = (int) number(config, "held_ms");
        ttl = number(config, "ttl_ms");
    }

    private static String text(String json, String name) {
        Matcher m = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        return m.find() ? m.group(1) : "";
    }

    private static long number(String json, String name) {
        Matcher m = Pattern.compile("\"" + name + "\":(-?\\d+)").matcher(json);
        return m.find() ? Long.parseLong(m.group(1)) : 0;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Contend c = new Contend(in.readLine());
        for (int i = 0; i < c.contenders; i++) {
            c.clients.add(c.connect());
            Wanted w = c.wanted(i, "warm/" + i);
            for (boolean write : new boolean[] {true, false}) {
                w.release(w.acquire(write, TimeUnit.SECONDS.toNanos(30)));
            }
        }
        out.println("{\"ready\":true,\"version\":\"Redisson " + Redisson.class.getPackage().getImplementationVersion()
            + ", Java " + System.getProperty("java.version") + "\"}");
        out.flush();
        for (String line; (line = in.readLine()) != null; ) {
            c.follow(text(line, "name"), number(line, "start"), number(line, "end"), out);
            out.flush();
        }
        System.exit(0);
    }

    private List<RedissonClient> connect() {
        List<RedissonClient> all = new ArrayList<>();
        for (String address : addresses) {
            Config config = new Config();
            config.setNettyThreads(2);
            config.setThreads(2);
            config.setLockWatchdogTimeout(ttl);
            config.useSingleServer().setAddress("redis://" + address)
                .setConnectionPoolSize(2).setConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(1).setSubscriptionConnectionMinimumIdleSize(1);
            all.add(Redisson.create(config));
        }
        return all;
    }

    private Wanted wanted(int i, String name) {
        List<RedissonClient> mine = clients.get(i);
        switch (peer) {
            case "redisson-semaphore":
                RSemaphore plain = mine.get(0).getSemaphore(name);
                plain.trySetPermits(limit);
                return new Wanted() {
                    public Object acquire(boolean write, long wait) throws Exception {
                        return plain.tryAcquire(Duration.ofNanos(wait)) ? name : null;
                    }

                    public void release(Object held) {
                        plain.release();
                    }
                };
            case "redisson-permits":
                RPermitExpirableSemaphore permits = mine.get(0).getPermitExpirableSemaphore(name);
                permits.trySetPermits(limit);
                return new Wanted() {
                    public Object acquire(boolean write, long wait) throws Exception {
                        // One unit for both times; a wait of 0 would not wait.
                        long ms = Math.max(1, TimeUnit.NANOSECONDS.toMillis(wait));
                        return permits.tryAcquire(ms, ttl, TimeUnit.MILLISECONDS);
                    }

                    public void release(Object held) {
                        permits.release((String) held);
                    }
                };
            case "redisson-readers":
                RLock read = lock(mine, name, false);
                RLock write = lock(mine, name, true);
                return new Wanted() {
                    public Object acquire(boolean writes, long wait) throws Exception {
                        RLock l = writes ? write : read;
                        // Without a lease time a watchdog keeps the lock.
                        long ms = Math.max(1, TimeUnit.NANOSECONDS.toMillis(wait));
                        return l.tryLock(ms, -1, TimeUnit.MILLISECONDS) ? l : null;
                    }

                    public void release(Object held) {
                        ((RLock) held).unlock();
                    }
                };
            default:
                throw new IllegalArgumentException("no contender " + peer);
        }
    }

    @SuppressWarnings("deprecation")
    private static RLock lock(List<RedissonClient> clients, String name, boolean write) {
        RLock[] locks = clients.stream().map(c -> c.getReadWriteLock(name))
            .map(l -> write ? l.writeLock() : l.readLock()).toArray(RLock[]::new);
        return locks.length == 1 ? locks[0] : new RedissonRedLock(locks);
    }

    private void follow(String name, long start, long end, PrintStream out) throws Exception {
        List<Thread> threads = new ArrayList<>();
        List<StringBuilder> lines = new ArrayList<>();
        List<Exception> errors = new ArrayList<>();
        for (int i = 0; i < contenders; i++) {
            int number = first + i;
            Wanted w = wanted(i, name);
            StringBuilder mine = new StringBuilder();
            lines.add(mine);
            Thread t = new Thread(() -> contend(w, number, start, end, mine, errors));
            threads.add(t);
            t.start();
        }
        for (Thread t : threads) {
            t.join();
        }
        lines.forEach(out::print);
        String error = errors.isEmpty() ? "" : errors.get(0).toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ");
        out.println("{\"done\":true,\"errors\":" + errors.size() + ",\"error\":\"" + error + "\"}");
    }

    private void contend(Wanted w, int number, long start, long end, StringBuilder lines, List<Exception> errors) {
        try {
            // nanoTime is the clock that all processes share on Linux.
            TimeUnit.NANOSECONDS.sleep(start - System.nanoTime());
            long called = System.nanoTime();
            for (int n = 0; System.nanoTime() < end; ) {
                boolean write = writeEvery > 0 && (n + number) % writeEvery == 0;
                Object got = null;
                try {
                    got = w.acquire(write, end - System.nanoTime());
                } catch (Exception e) {
                    note(errors, e);
                    Thread.sleep(100 + ThreadLocalRandom.current().nextInt(100));
                    continue;
                }
                long acquired = System.nanoTime();
                if (got == null) {
                    if (acquired < end) {
                        continue;
                    }
                    line(lines, number, write, false, called, end, 0);
                    return;
                }
                Thread.sleep(held);
                long released = System.nanoTime();
                line(lines, number, write, true, called, acquired, released);
                try {
                    w.release(got);
                } catch (Exception e) {
                    note(errors, e);
                }
                n++;
                called = System.nanoTime();
            }
        } catch (Exception e) {
            note(errors, e);
        }
    }

    private static void note(List<Exception> errors, Exception e) {
        synchronized (errors) {
            errors.add(e);
        }
    }

    private static void line(StringBuilder lines, int number, boolean write, boolean got, long called, long acquired, long released) {
        lines.append("{\"c\":").append(number).append(",\"w\":").append(write).append(",\"got\":").append(got)
            .append(",\"called\":").append(called).append(",\"acquired\":").append(acquired)
            .append(",\"released\":").append(released).append("}\n");
    }
}
