-- Says who has the lock, and changes nothing.
--
-- KEYS[1]  the lock
-- KEYS[2]  its fence
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
--#include other
local time = redis.call('TIME')
local got = redis.call('MGET', KEYS[1], KEYS[2])
return other(got[1], got[2] or '', time)
