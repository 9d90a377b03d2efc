-- Takes the lock for a value, if it is free or already that value's. If not, and
-- the value may wait, puts it into the queue.
--
-- KEYS[1]  the lock                   ARGV[1]   value
-- KEYS[2]  its fence                  ARGV[2]   time to live, ms
-- KEYS[3]  its turn                   ARGV[3]   token, 20 digits; '' for none
-- KEYS[4]  its queue                  ARGV[4]   retention of the fence, ms
-- KEYS[5]  the server's marker;       ARGV[5]   window of the token, µs
--          absent where it is not to  ARGV[6]   with KEYS[5]: how the marker must begin, up
--          be looked at                         to the space after the config
--                                     ARGV[7]   with KEYS[5]: the line of INFO replication with
--                                               the id that the marker must have; '' if that
--                                               is not known, or if replicas are required; o
--                                               if the guard is off
--                                     ARGV[8]   b to barge, else ''
--                                     ARGV[9]   to wait: ticket, µs
--                                     ARGV[10]  to wait: inbox; '' for one who polls
--          ARGV[6] to [10] may be absent from some point on
--
-- Reply: in the common case a number, the server's clock in µs. It means granted,
-- with the token as the fence, by the server that ARGV[7] names, if any. Otherwise
-- {status, holder, left ms, fence, now s, now µs, rank}, all strings
--   granted     the key is ours for the whole time to live; holder is the
--               server's replication id, with the guard on
--   held        holder has it, for as long as left says (-1: no expiry), or is
--               a group; see lib/group.lua
--   foreign     a key of type holder is in its place
--   reserved    it is free, and kept for somebody before us in the queue; left,
--               unless it is 0, says when to look whether that one took it
--   stale       the token is not above the fence
--   behind      the token is too far behind this server's clock
--   ahead       the token is too far ahead of this server's clock, and of the fence
--   quarantine  this server may have forgotten locks; left says for how long yet
--   config      this server is marked for another membership, or, with the guard
--               off, for locks that live less long
-- rank is our place in the queue, 1 for the head; 0, or absent, if we have none
-- or an error: NOINFO, READONLY, UNREPLICATED
--#include markerFormat
local lock, value, token, ticket = KEYS[1], ARGV[1], ARGV[3], ARGV[9]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3], KEYS[5] or KEYS[3])
local holder, fence, turn, marker = got[1], token ~= '' and got[2] or '', got[3], KEYS[5] and got[4]

-- The common case: nobody has the lock and nobody waits. It comes before the
-- helpers, since even to define a function takes time.
if not holder and not turn then
  local at, expected, server = time[1] * 1000000 + time[2], ARGV[6], ARGV[7]
  local trusted = not KEYS[5] or server == 'o' and not marker
  -- Where replicas are required it is left to guard to count them.
  if marker and server ~= '' and server ~= 'o' and string.find(marker, expected, 1, true) == 1 then
    local info = redis.pcall('INFO', 'replication')
    trusted = type(info) == 'string' and string.find(info, server, 1, true) and string.find(info, 'role:master', 1, true)
      and tonumber(string.sub(marker, #expected + 1, #expected + 16)) <= at
  end
  local t, window = tonumber(token), tonumber(ARGV[5])
  if trusted and (t and fence < token and t >= at - window and t <= at + window or not t and not got[2])
    and redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
    if t then
      -- Memory, disk and role were found fit for the first write of this
      -- script, and so are for the second.
      redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
    end
    return at
  end
end

-- All other cases.
local server = ''
if KEYS[5] then
  --#include role
  --#include marker
  --#include guard
  local refused = guard(marker, string.sub(ARGV[6], configFrom, -2), ARGV[7], ARGV[2], time)
  if refused then return refused end
  server = ARGV[7] ~= 'o' and string.sub(marker, idFrom, idTo) or ''
end

--#include fenceFormat
--#include queue
--#include group
local stored = got[2] or ''
fence = string.sub(fence, 1, fenceDigits)

-- refused queues us if we may wait.
local function refused(status, by, left)
  local rank = '0'
  if ticket then
    rank = join(ticket)
  end
  if status == 'reserved' and watch then
    left = string.format('%.0f', (lapses - now) / 1000)
  end
  return {status, by, left, stored, time[1], time[2], rank}
end

if turn or ticket then
  openQueue(turn, time, string.sub(stored, 1, fenceDigits), ticket and value .. toInbox .. ARGV[10] or '')
end
holder = seen(holder, time, value)
if holder and holder ~= value then
  return refused('held', holder, tostring(redis.call('PTTL', lock)))
end
if turn and not holder and ARGV[8] ~= 'b' and redis.call('EXISTS', lock) == 0 then
  -- It is kept for the first in the queue, unless we come before that one: by a
  -- ticket that is lower, and not yet in the queue.
  local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if first ~= me then
    first = serve()
  end
  if first and first ~= me then
    local score = tonumber(redis.call('ZSCORE', KEYS[4], first))
    local before = ticket and (tonumber(ticket) < score or (tonumber(ticket) == score and me < first))
    if not before or redis.call('ZSCORE', KEYS[4], me) then
      return refused('reserved', '', '0')
    end
  end
end
--#include fence
-- The rule of node.Judge.
if token ~= '' then
  if fence ~= '' and (token < fence or (token == fence and not holder)) then
    return {'stale', '', '0', fence, time[1], time[2]}
  end
  if not holder and tonumber(token) < time[1] * 1000000 + time[2] - ARGV[5] then
    return {'behind', '', '0', fence, time[1], time[2]}
  end
  if tooFarAhead(token, fence, time, ARGV[5]) then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
if holder then
  redis.call('SET', lock, value, 'PX', ARGV[2])
elseif not redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
  -- MGET does not see what is no string.
  taken, count = '', 1
  return refused('foreign', redis.call('TYPE', lock).ok, tostring(redis.call('PTTL', lock)))
end
if token ~= '' then
  redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
elseif stored ~= '' then
  -- The fence is not our token.
  redis.call('SET', KEYS[2], fenceText(string.sub(stored, 1, fenceDigits), noToken, floorOf(stored)), 'KEEPTTL')
end
if turn then
  if ticket then redis.call('ZREM', KEYS[4], me) end
  taken, count = '', 1
  serve()
end
return {'granted', server, '0', token, time[1], time[2]}
