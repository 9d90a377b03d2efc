-- KEYS  the lock, its fence, the marker
-- ARGV  value, time to live in ms, retention of the fence in ms, LIST
if not string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then return 'replica' end
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
local marker = redis.call('GET', KEYS[3])
if marker then
  local list, ttl, replicas = string.match(marker, '^3 %x+ %d+ (%x+) (%d+) %d+ %d+ (%d+) ')
  if list ~= ARGV[4] or replicas ~= '0' or tonumber(ARGV[2]) > ttl + 1 then return 'config' end
end
redis.call('PEXPIRE', KEYS[2], math.max(ARGV[3], redis.call('PTTL', KEYS[2])))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'granted'
