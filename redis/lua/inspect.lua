-- Says who has the lock, and changes nothing.
--
-- KEYS[1]  the lock
-- KEYS[2]  its fence
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
local lock = KEYS[1]
local time = redis.call('TIME')
local fence = redis.call('GET', KEYS[2]) or ''
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' then
  if not string.find(holder.err, 'WRONGTYPE', 1, true) then return holder end
  return {'foreign', redis.call('TYPE', lock).ok, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
end
if not holder then
  return {'absent', '', '0', fence, time[1], time[2]}
end
return {'held', holder, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
