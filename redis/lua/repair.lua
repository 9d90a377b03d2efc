-- Gives the lock to a value on a server that missed its acquisition, after a
-- quorum of others has just extended it. A fence at the very token means that
-- this server knew of the lock and that it was released: then it stays free. A
-- higher one is that of a contender who came here meanwhile, and in vain, since
-- a quorum had just named the holder: it stays as it is. But a repair that comes
-- late is refused: the lock may have been released since, and others may have
-- had it, so that the key would be nobody's.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  time to live, ms
-- KEYS[3]  its turn                   ARGV[3]  token, 20 digits
-- KEYS[4]  its queue                  ARGV[4]  retention of the fence, ms
-- KEYS[5]  the server's marker;       ARGV[5]  inbox under which the value may wait
--          absent where it is not to  ARGV[6]  when it is too late, µs on this clock
--          be looked at               ARGV[7]  with KEYS[5]: the config of the membership
--                                     ARGV[8]  with KEYS[5]: o if the guard is off, else ''
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   granted     the key is ours for the whole time to live
--   held        holder has it, for as long as left says (-1: no expiry)
--   foreign     a key of type holder is in its place
--   stale       the token is the fence, or it is too late
--   quarantine  this server may have forgotten locks; left says for how long yet
--   config      this server is marked for another membership
-- or an error: NOINFO, READONLY, UNREPLICATED
--#include role
--#include markerFormat
--#include marker
--#include guard
--#include fenceFormat
--#include fence
--#include queue
--#include group
--#include other
local lock, value, token = KEYS[1], ARGV[1], ARGV[3]
local time = redis.call('TIME')
local marker = KEYS[5] and redis.call('GET', KEYS[5])
local refused
if marker or KEYS[5] and ARGV[8] ~= 'o' then
  refused = guard(marker, ARGV[7], ARGV[8], ARGV[2], time)
else
  refused = select(2, replication(true))
end
if refused then return refused end
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local holder, stored, turn = seen(got[1], time, value), got[2] or '', got[3]
if holder == value then
  return {'granted', '', '0', stored, time[1], time[2]}
end
if holder then
  return other(holder, stored, time)
end
local fence, floor = string.sub(stored, 1, fenceDigits), floorOf(stored)
if fence == token or time[1] * 1000000 + time[2] > tonumber(ARGV[6]) then
  return {'stale', '', '0', fence, time[1], time[2]}
end
if not redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
  return other(holder, fence, time)
end
if fence < token then
  fence = token
  redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
else
  redis.call('SET', KEYS[2], fenceText(fence, token, floor < token and token or floor), 'PX', ARGV[4])
end
if turn then
  openQueue(turn, time, fence, '')
  redis.call('ZREM', KEYS[4], value .. toInbox .. ARGV[5])
  taken, count = '', 1
  serve()
end
return {'granted', '', '0', fence, time[1], time[2]}
