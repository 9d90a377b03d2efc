-- Takes the lock for a value, if it is free or already that value's, and puts
-- the value into the line if it is not.
--
-- KEYS[1]  the lock                   ARGV[1]   value
-- KEYS[2]  its fence                  ARGV[2]   time to live, ms
-- KEYS[3]  its turn                   ARGV[3]   token, 20 digits; '' for none
-- KEYS[4]  its queue                  ARGV[4]   retention of the fence, ms
-- KEYS[5]  the server's marker;       ARGV[5]   window of the token, µs
--          absent with the guard off  ARGV[6]   how far a token may leap over its fence
--                                     ARGV[7]   with the guard on: its config
--                                     ARGV[8]   with the guard on: its nodes
--                                     ARGV[9]   b to barge, else ''
--                                     ARGV[10]  to wait: ticket, µs
--                                     ARGV[11]  to wait: inbox; '' for one who asks
--          ARGV[7] to [11] may be absent from some point on
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings
--   granted     the key is ours for the whole time to live; holder is the
--               server's replication id, with the guard on
--   held        holder has it, for as long as left says (-1: no expiry)
--   foreign     a key of type holder is in its place
--   reserved    it is free, and kept for somebody before us in line
--   stale       the token is not above the fence
--   behind      the token is too far behind this server's clock
--   ahead       the token is too far ahead of this server's clock, and of the fence
--   quarantine  this server may have forgotten locks; left says for how long yet
--   config      this server is marked for another list of nodes
-- rank is our place in line, 1 for the head; 0, or absent, if we have none
local lock, value, token, ticket = KEYS[1], ARGV[1], ARGV[3], ARGV[10]
local time = redis.call('TIME')
local got, server = nil, ''
if KEYS[5] then
  got = redis.call('MGET', lock, KEYS[2], KEYS[3], KEYS[5])
  local refused = guard(got[4], KEYS[5], ARGV[7], ARGV[8], time)
  if refused then return refused end
  server = string.sub(got[4], 3, 42)
else
  got = redis.call('MGET', lock, KEYS[2], KEYS[3])
end
local holder, fence, turn = got[1], token ~= '' and got[2] or '', got[3]

local function refused(status, by, left, free)
  local rank = '0'
  if ticket then
    rank = join(ticket, free)
  end
  return {status, by, left, fence, time[1], time[2], rank}
end

if turn or ticket then
  line(turn, time, fence, ticket and value .. '\0' .. ARGV[11] or '')
end
if holder and holder ~= value then
  return refused('held', holder, tostring(redis.call('PTTL', lock)), false)
end
if turn and not holder and ARGV[9] ~= 'b' and redis.call('EXISTS', lock) == 0 then
  local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if first ~= me then
    first = serve(true)
  end
  if first and first ~= me then
    local score = tonumber(redis.call('ZSCORE', KEYS[4], first))
    local ahead = ticket and (tonumber(ticket) < score or (tonumber(ticket) == score and me < first))
    if not ahead or redis.call('ZSCORE', KEYS[4], me) then
      return refused('reserved', '', '0', true)
    end
  end
end
if token ~= '' then
  if fence ~= '' and (token < fence or (token == fence and not holder)) then
    return {'stale', '', '0', fence, time[1], time[2]}
  end
  local t, at = tonumber(token), time[1] * 1000000 + time[2]
  if not holder and t < at - ARGV[5] then
    return {'behind', '', '0', fence, time[1], time[2]}
  end
  if t > at + ARGV[5] and (fence == '' or t > fence + ARGV[6]) then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
if holder then
  redis.call('SET', lock, value, 'PX', ARGV[2])
elseif not redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
  -- MGET does not see what is no string.
  return refused('foreign', redis.call('TYPE', lock).ok, tostring(redis.call('PTTL', lock)), false)
end
if token ~= '' then
  -- Memory, disk and role were found fit for the first write of this script,
  -- and so are for the second.
  redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
end
if turn then
  if ticket then redis.call('ZREM', KEYS[4], me) end
  serve(false)
end
return {'granted', server, '0', token, time[1], time[2]}
