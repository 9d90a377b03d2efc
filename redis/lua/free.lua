-- Frees the lock, if it is the value's, and raises the fence to the token: an
-- acquire of the same value and token that is still on its way then finds
-- itself stale, and no lock is left behind by it. Takes the value out of the
-- line, and wakes who is next. This file is the common case, in which nobody
-- waits; release.lua, which follows it, is all the others.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  token, 20 digits; '' for none
-- KEYS[3]  its turn                   ARGV[3]  retention of the fence, ms
-- KEYS[4]  its queue                  ARGV[4]  window of the token, µs
--                                     ARGV[5]  how far a token may leap over its fence
--                                     ARGV[6]  inbox under which the value may wait
--                                     ARGV[7]  given if it must not be done twice: with a
--                                              token that is above all before it
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   granted   the key was ours and is gone
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   stale     with ARGV[7]: the key is ours, and the fence is not below the token
--   ahead     with ARGV[7]: the key is ours, and the token could not be the fence
local lock, token = KEYS[1], ARGV[2]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local holder, fence, turn = got[1], token ~= '' and got[2] or '', got[3]
local once = ARGV[7] and holder == ARGV[1] and token ~= ''
if once and fence >= token then
  return {'stale', '', '0', fence, time[1], time[2]}
end
if fence < token then
  -- A token that is ahead of the clock would be refused in any case, and must
  -- not lift the fence by way of its release. See node.Judge.
  local t, at = tonumber(token), time[1] * 1000000 + time[2]
  if t <= at + ARGV[4] or (fence ~= '' and t <= string.sub(fence, 1, 20) + ARGV[5]) then
    if holder and holder ~= ARGV[1] then
      -- Another has the lock, and keeps its token: see redis/fence.go.
      fence = token .. ' ' .. (fence == '' and '00000000000000000000' or string.sub(fence, -20))
    else
      fence = token
    end
    redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
  elseif once then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
if holder == ARGV[1] then
  redis.call('DEL', lock)
  if not turn then
    return {'granted', '', '0', fence, time[1], time[2]}
  end
end

