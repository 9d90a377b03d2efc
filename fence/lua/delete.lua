-- Deletes a value, if the token is not stale. The token stays: it is what
-- keeps a stale writer from bringing the value back.
--
-- KEYS[1]  the highest token          ARGV[1]  token, 20 digits
-- KEYS[2]  the value                  ARGV[2]  retention of the token, ms; 0 for ever
--
-- Reply: {status, highest}, both strings
--   accepted  there is no value, and the token is the highest
--   stale     highest is higher; nothing was written
local highest = redlatch_fence(KEYS[1], ARGV[1], ARGV[2])
if highest then return {'stale', highest} end
redis.call('DEL', KEYS[2])
return {'accepted', ARGV[1]}
