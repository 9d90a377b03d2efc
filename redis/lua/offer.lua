-- Yields the lock to somebody with a lower ticket, if one waits here: frees it,
-- and puts the value into the queue, in one step. So callers who have a few
-- servers each end with all of them in the hands of the first in the queue.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  ticket, µs
-- KEYS[3]  its turn                   ARGV[3]  inbox; '' for one who polls
-- KEYS[4]  its queue                  ARGV[4]  token, 20 digits, above all that the value
--                                              asked with before; '' for none
--                                     ARGV[5]  retention of the fence, ms
--                                     ARGV[6]  window of the token, µs
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings
--   granted   the key is still ours: nobody is before us in the queue
--   reserved  the key was ours, and is free for one who is before us
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   stale     the key is ours, and the fence is not below the token: this was
--             applied before
--   ahead     the key is ours, and the token could not be the fence
--#include fenceFormat
--#include fence
--#include queue
--#include other
local lock, value, ticket, token = KEYS[1], ARGV[1], ARGV[2], ARGV[4]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local holder, stored, turn = got[1], got[2] or '', got[3]
if holder ~= value then
  return other(holder, stored, time)
end
local fence = string.sub(stored, 1, fenceDigits)
if token ~= '' then
  if fence >= token then
    return {'stale', '', '0', fence, time[1], time[2]}
  elseif tooFarAhead(token, fence, time, ARGV[6]) then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
openQueue(turn, time, fence, value .. toInbox .. ARGV[3])
local first = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local score, mine = tonumber(first[2]), tonumber(ticket)
if not score or first[1] == me or mine < score or (mine == score and me < first[1]) then
  -- The caller relies on what it keeps. Should this be applied a second time, it
  -- must not free the lock then.
  if token ~= '' then
    redis.call('SET', KEYS[2], fenceText(token, holderToken(stored), token), 'PX', ARGV[5])
    fence = token
  end
  return {'granted', '', '0', fence, time[1], time[2], '0'}
end
redis.call('DEL', lock)
return {'reserved', '', '0', fence, time[1], time[2], join(ticket)}
