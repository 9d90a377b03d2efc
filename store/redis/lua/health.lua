-- Reports what the server says of itself, and changes nothing.
--
-- KEYS[1]  any key; in a cluster it chooses the shard
--
-- Reply: {INFO server, replication, persistence, memory}; empty where INFO is
-- not allowed
local reply = {}
for i, section in ipairs({'server', 'replication', 'persistence', 'memory'}) do
  local info = redis.pcall('INFO', section)
  reply[i] = type(info) == 'table' and '' or info
end
return reply
