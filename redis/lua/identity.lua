-- Says which server this is, and whether it may evict what it keeps.
--
-- KEYS[1]  any key; in a cluster it chooses the shard
--
-- Reply: {run id, maxmemory, maxmemory-policy}; empty where INFO is not allowed
local info, memory = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'memory')
if type(info) == 'table' or type(memory) == 'table' then return {'', '', ''} end
return {
  string.match(info, 'run_id:(%x+)') or '',
  string.match(memory, 'maxmemory:(%d+)') or '',
  string.match(memory, 'maxmemory_policy:([%a-]+)') or '',
}
