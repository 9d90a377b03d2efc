-- Notes that an occurrence of a job is done, or says whether it is, and since
-- when this server remembers.
--
-- KEYS[1]  the name's marks: a sorted set  ARGV[1]  the occurrence
--          of occurrences, each with       ARGV[2]  retention, ms
--          the time at which it is         ARGV[3]  given to note that it is done
--          forgotten, ms
-- KEYS[2]  since when they are remembered,
--          µs
--
-- Reply: {status, since, '0', '', now s, now µs}, all strings
--   granted  it is done
--   absent   it is not, as far as this server remembers
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local retention = tonumber(ARGV[2])

-- last(key) has a key live for the retention at least.
local function last(key)
  if redis.call('PTTL', key) < retention then
    redis.call('PEXPIRE', key, ARGV[2])
  end
end

local since = redis.call('GET', KEYS[2])
if not since then
  since = string.format('%d%06d', time[1], time[2])
  redis.call('SET', KEYS[2], since, 'PX', ARGV[2])
else
  last(KEYS[2])
end

local forgotten = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if ARGV[3] then
  if forgotten < now + retention then
    forgotten = now + retention
    redis.call('ZADD', KEYS[1], string.format('%.0f', forgotten), ARGV[1])
  end
  last(KEYS[1])
  -- Those whose time is over go, a few at a time.
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 9, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    if tonumber(oldest[i + 1]) <= now then redis.call('ZREM', KEYS[1], oldest[i]) end
  end
end
return {forgotten > now and 'granted' or 'absent', since, '0', '', time[1], time[2]}
