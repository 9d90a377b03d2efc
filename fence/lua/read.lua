-- Claims a resource for a reader's token.
--
-- KEYS[1]  its highest token          ARGV[1]  token, 20 digits
-- KEYS[2]  what readers left          ARGV[2]  retention of the token, ms; 0 for ever
--
-- Reply: {status, highest}, both strings
--   accepted  no writer had a higher token
--   stale     highest is a writer's and higher; nothing was written
local highest = redlatch_fence_read(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
if highest then return {'stale', highest} end
return {'accepted', ARGV[1]}
