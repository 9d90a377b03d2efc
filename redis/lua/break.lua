-- Removes the lock from any holder, and raises the fence to the token, so that
-- the next holder's is above it. Those who wait keep their places, and the first
-- of them is woken.
--
-- KEYS[1]  the lock                   ARGV[1]  token, 20 digits; '' for none
-- KEYS[2]  its fence                  ARGV[2]  retention of the fence, ms
-- KEYS[3]  its turn                   ARGV[3]  window of the token, µs
-- KEYS[4]  its queue                  ARGV[4]  '1' to remove a foreign format too
-- KEYS[5]  the server's marker;       ARGV[5]  with KEYS[5]: the id of the list
--          absent where it is not to
--          be looked at
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   granted   there is no key any more
--   foreign   a key of type holder is in its place, and stays
--   stale     the fence is not below the token: somebody took the lock since
--   ahead     the token is too far ahead of this server's clock, and of the fence
--   config    this server is marked for another membership
--#include markerFormat
--#include fenceFormat
--#include fence
--#include queue
--#include group
local lock, token = KEYS[1], ARGV[1]
local time = redis.call('TIME')
if KEYS[5] then
  local marker = redis.call('GET', KEYS[5])
  if marker and string.sub(marker, listFrom, listTo) ~= ARGV[5] then
    return {'config', marker, '0', '', time[1], time[2]}
  end
end
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local fence = token ~= '' and string.sub(got[2] or '', 1, fenceDigits) or ''
local holder = seen(got[1], time, '')
if fence > token or (fence == token and token ~= '' and holder) then
  return {'stale', '', '0', fence, time[1], time[2]}
end
if fence < token and tooFarAhead(token, fence, time, ARGV[3]) then
  return {'ahead', '', '0', fence, time[1], time[2]}
end
-- MGET does not see what is no string.
if not holder and ARGV[4] ~= '1' then
  local kind = redis.call('TYPE', lock).ok
  if kind ~= 'none' then
    return {'foreign', kind, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
  end
end
redis.call('DEL', lock)
if token ~= '' then
  redis.call('SET', KEYS[2], token, 'PX', ARGV[2])
end
if got[3] then
  openQueue(got[3], time, token, '')
  taken, count = nil, 0
  serve()
end
return {'granted', '', '0', token, time[1], time[2]}
