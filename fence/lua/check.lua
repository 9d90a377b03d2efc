-- Claims a resource for a token.
--
-- KEYS[1]  its highest token          ARGV[1]  token, 20 digits
--                                     ARGV[2]  retention of the token, ms; 0 for ever
--
-- Reply: {status, highest}, both strings
--   accepted  the token is the highest
--   stale     highest is higher; nothing was written
local highest = redlatch_fence(KEYS[1], ARGV[1], ARGV[2])
if highest then return {'stale', highest} end
return {'accepted', ARGV[1]}
