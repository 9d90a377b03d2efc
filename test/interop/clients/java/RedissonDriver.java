import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Takes orders, one a line, and answers each with one line; see drive/drive.go. */
public class RedissonDriver {
    private final String[] addresses;
    // A lock without a lease time is kept by a watchdog, whose time is that of
    // the whole client: then there is one for each time that is asked for.
    private final boolean watchdog = System.getenv("REDISSON_WATCHDOG") != null;
    private final Map<Long, List<RedissonClient>> clients = new HashMap<>();
    private RLock lock;

    private RedissonDriver(String[] addresses) {
        this.addresses = addresses;
    }

    private List<RedissonClient> connect(long ms) {
        List<RedissonClient> all = new ArrayList<>();
        for (String address : addresses) {
            Config config = new Config();
            config.setNettyThreads(2);
            config.setThreads(2);
            config.setLockWatchdogTimeout(ms);
            config.useSingleServer().setAddress("redis://" + address)
                .setConnectionPoolSize(2).setConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(1).setSubscriptionConnectionMinimumIdleSize(1);
            all.add(Redisson.create(config));
        }
        return all;
    }

    public static void main(String[] addresses) throws Exception {
        RedissonDriver driver = new RedissonDriver(addresses);
        System.out.println("ready " + Redisson.class.getPackage().getImplementationVersion());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String said;
            try {
                said = driver.carryOut(line.split(" "));
            } catch (Exception e) {
                said = ("error " + e.getClass().getSimpleName() + ": " + e.getMessage()).replaceAll("\\s+", " ");
            }
            System.out.println(said);
        }
        System.exit(0);
    }

    private String carryOut(String[] order) throws Exception {
        switch (order[0]) {
            case "acquire":
                long ms = Long.parseLong(order[2]);
                RLock next = lockFor(order[1], clients.computeIfAbsent(watchdog ? ms : 30000, this::connect));
                if (!next.tryLock(0, watchdog ? -1 : ms, TimeUnit.MILLISECONDS)) {
                    return "held";
                }
                lock = next;
                return "ok";
            case "extend":
                return "cannot";
            case "release":
                try {
                    lock.unlock();
                    return "ok";
                } catch (IllegalMonitorStateException e) {
                    return "lost";
                }
            default:
                return "error not an order: " + order[0];
        }
    }

    @SuppressWarnings("deprecation")
    private static RLock lockFor(String name, List<RedissonClient> clients) {
        if (clients.size() == 1) {
            return clients.get(0).getLock(name);
        }
        RLock[] locks = clients.stream().map(c -> c.getLock(name)).toArray(RLock[]::new);
        return new RedissonRedLock(locks);
    }
}
