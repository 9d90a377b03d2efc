-- Reports who has the lock, and changes nothing.
--
-- KEYS[1]  the lock
-- KEYS[2]  its fence
-- KEYS[3]  its turn
-- KEYS[4]  its queue
-- KEYS[5]  its group
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings, with
-- the rank 0
--   held      holder has it, for as long as left says (-1: no expiry), or is a
--             group; see lib/group.lua
--   foreign   a key of type holder is in its place
--   absent    there is no key
--#include entry
local value, share, token, retention, window, ttl, ticket, inbox = nil, '', '', nil, 0, nil, nil, ''
--#include engine
return state()
