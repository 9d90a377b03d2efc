-- Takes the lock for a value, if it is free or already that value's.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  time to live, ms
--                                     ARGV[3]  token, 20 digits; '' for none
--                                     ARGV[4]  retention of the fence, ms
--                                     ARGV[5]  window of the token, µs
--                                     ARGV[6]  how far a token may leap over its fence
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   granted   the key is ours for the whole time to live
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   stale     the token is not above the fence
--   behind    the token is too far behind this server's clock
--   ahead     the token is too far ahead of this server's clock, and of the fence
local lock, value, token = KEYS[1], ARGV[1], ARGV[3]
local time = redis.call('TIME')

if token == '' then
  if redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
    return {'granted', '', '0', '', time[1], time[2]}
  end
end

local holder = redis.pcall('GET', lock)
if type(holder) == 'table' then
  if not string.find(holder.err, 'WRONGTYPE', 1, true) then return holder end
  return {'foreign', redis.call('TYPE', lock).ok, tostring(redis.call('PTTL', lock)), '', time[1], time[2]}
end
local fence = token ~= '' and redis.call('GET', KEYS[2]) or ''

if holder and holder ~= value then
  return {'held', holder, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
end
if token ~= '' then
  if fence ~= '' and (token < fence or (token == fence and not holder)) then
    return {'stale', '', '0', fence, time[1], time[2]}
  end
  if not holder then
    local t, now, window = tonumber(token), time[1] * 1000000 + time[2], tonumber(ARGV[5])
    if t < now - window then
      return {'behind', '', '0', fence, time[1], time[2]}
    end
    if t > now + window and (fence == '' or t > fence + ARGV[6]) then
      return {'ahead', '', '0', fence, time[1], time[2]}
    end
  end
  -- The fence comes first: a script that fails half way, for want of memory,
  -- then leaves no lock without its fence.
  redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
end
redis.call('SET', lock, value, 'PX', ARGV[2])
return {'granted', '', '0', token, time[1], time[2]}
