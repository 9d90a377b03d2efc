-- Reports which server this is, and whether it may evict keys.
--
-- KEYS[1]  any key; in a cluster it chooses the shard
--
-- Reply: {run id, maxmemory, maxmemory-policy, now s, now µs}; the first three
-- empty where INFO is not allowed
local time = redis.call('TIME')
local info, memory = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'memory')
if type(info) == 'table' or type(memory) == 'table' then return {'', '', '', time[1], time[2]} end
return {
  string.match(info, 'run_id:(%x+)') or '',
  string.match(memory, 'maxmemory:(%d+)') or '',
  string.match(memory, 'maxmemory_policy:([%a-]+)') or '',
  time[1], time[2],
}
