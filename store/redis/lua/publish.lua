-- Checks whether this user may notify waiters.
--
-- KEYS[1]  any key; in a cluster it chooses the shard
-- ARGV[1]  a channel
--
-- Reply: {''}, or {error}
local heard = redis.pcall('PUBLISH', ARGV[1], '')
return {type(heard) == 'table' and heard.err or ''}
