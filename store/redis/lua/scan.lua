-- Takes one step through the server's keys, and returns those that stand beside
-- a lock. A step is bounded, however many keys there are.
--
-- KEYS[1]  any key; in a cluster it   ARGV[1]  cursor, '0' to begin
--          chooses the shard          ARGV[2]  how many keys to look at
--
-- Reply: {next cursor, key, key, …}; the walk is over when the cursor is '0'
local step = redis.call('SCAN', ARGV[1], 'MATCH', 'redlatch:1:[fq]*', 'COUNT', ARGV[2])
local reply = {step[1]}
for _, key in ipairs(step[2]) do
  reply[#reply + 1] = key
end
return reply
