-- Leaves the lock to somebody with a lower ticket, if one waits here: frees it,
-- and puts the value into the line, in one step. So callers who have a few
-- servers each end up with all of them in the hands of the first in line.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  ticket, µs
-- KEYS[3]  its turn                   ARGV[3]  inbox; '' for one who asks
-- KEYS[4]  its queue                  ARGV[4]  token, 20 digits, above all that the value
--                                              asked with before; '' for none
--                                     ARGV[5]  retention of the fence, ms
--                                     ARGV[6]  window of the token, µs
--                                     ARGV[7]  how far a token may leap over its fence
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings
--   granted   the key is still ours: nobody is before us in line
--   reserved  the key was ours, and is free for who is before us
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   stale     the key is ours, and the fence is not below the token: this was
--             done before
--   ahead     the key is ours, and the token could not be the fence
local lock, value, ticket = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local holder, fence, turn = got[1], got[2] or '', got[3]
if holder ~= value then
  return other(holder, fence, time)
end
-- redis/fence.go says how a fence is stored.
local token, stored = ARGV[4], fence
fence = string.sub(stored, 1, 20)
if token ~= '' then -- see node.Judge
  local t, at = tonumber(token), time[1] * 1000000 + time[2]
  if fence >= token then
    return {'stale', '', '0', fence, time[1], time[2]}
  elseif t > at + ARGV[6] and (fence == '' or t > fence + ARGV[7]) then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
line(turn, time, fence, value .. '\0' .. ARGV[3])
local first = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local score = tonumber(first[2])
if not score or ticket < score or (ticket == score and me < first[1]) then
  -- What we keep we build on. Should this be carried out a second time, it
  -- must not free the lock then.
  if token ~= '' then
    local own = stored == '' and '00000000000000000000' or string.sub(stored, -20)
    redis.call('SET', KEYS[2], token .. ' ' .. own, 'PX', ARGV[5])
    fence = token
  end
  return {'granted', '', '0', fence, time[1], time[2], '0'}
end
redis.call('DEL', lock)
return {'reserved', '', '0', fence, time[1], time[2], join(ARGV[2], true)}
