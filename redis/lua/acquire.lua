-- Takes the lock for a value, if it is free or already that value's.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  time to live, ms
-- KEYS[3]  the server's marker;       ARGV[3]  token, 20 digits; '' for none
--          absent with the guard off  ARGV[4]  retention of the fence, ms
--                                     ARGV[5]  window of the token, µs
--                                     ARGV[6]  how far a token may leap over its fence
--                                     ARGV[7]  with the guard on: its config
--                                     ARGV[8]  with the guard on: its nodes
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   granted     the key is ours for the whole time to live; holder is the
--               server's replication id, with the guard on
--   held        holder has it, for as long as left says (-1: no expiry)
--   foreign     a key of type holder is in its place
--   stale       the token is not above the fence
--   behind      the token is too far behind this server's clock
--   ahead       the token is too far ahead of this server's clock, and of the fence
--   quarantine  this server may have forgotten locks; left says for how long yet
--   config      this server is marked for another list of nodes
local lock, value, token = KEYS[1], ARGV[1], ARGV[3]
local time = redis.call('TIME')
local holder, fence, server = nil, nil, ''
if KEYS[3] then
  local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
  local refused = guard(got[3], KEYS[3], ARGV[7], ARGV[8], time)
  if refused then return refused end
  holder, fence, server = got[1], got[2], string.sub(got[3], 3, 42)
elseif token == '' then
  if redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
    return {'granted', '', '0', '', time[1], time[2]}
  end
  holder = redis.call('MGET', lock)[1]
else
  local got = redis.call('MGET', lock, KEYS[2])
  holder, fence = got[1], got[2]
end
fence = token ~= '' and fence or ''

if holder and holder ~= value then
  return {'held', holder, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
end
if token ~= '' then
  if fence ~= '' and (token < fence or (token == fence and not holder)) then
    return {'stale', '', '0', fence, time[1], time[2]}
  end
  local t, now = tonumber(token), time[1] * 1000000 + time[2]
  if not holder and t < now - ARGV[5] then
    return {'behind', '', '0', fence, time[1], time[2]}
  end
  if t > now + ARGV[5] and (fence == '' or t > fence + ARGV[6]) then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
if holder then
  redis.call('SET', lock, value, 'PX', ARGV[2])
elseif not redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
  -- MGET does not see what is no string.
  return {'foreign', redis.call('TYPE', lock).ok, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
end
if token ~= '' then
  -- Memory, disk and role were found fit for the first write of this script,
  -- and so are for the second.
  redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
end
return {'granted', server, '0', token, time[1], time[2]}
