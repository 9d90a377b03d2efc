-- Sets a value, if the token is not stale.
--
-- KEYS[1]  the highest token          ARGV[1]  token, 20 digits
-- KEYS[2]  the value                  ARGV[2]  retention of the token, ms; 0 for ever
--                                     ARGV[3]  value
--                                     ARGV[4]  time to live of the value, ms; 0 for ever
--
-- Reply: {status, highest}, both strings
--   accepted  the value is set, and the token is the highest
--   stale     highest is higher; nothing was written
local highest = redlatch_fence(KEYS[1], ARGV[1], ARGV[2])
if highest then return {'stale', highest} end
if ARGV[4] == '0' then
  redis.call('SET', KEYS[2], ARGV[3])
else
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
end
return {'accepted', ARGV[1]}
