-- Takes the lock in all but the common case; see quick.lua, which is put before
-- this file and has read the keys.
if KEYS[5] then
  local sits = guard(marker, ARGV[7], ARGV[8], ARGV[2], time)
  if sits then return sits end
  server = ARGV[8] ~= 'o' and string.sub(marker, 3, 42) or ''
end

-- redis/fence.go says how a fence is stored.
local stored = got[2] or ''
fence = string.sub(fence, 1, 20)

local function refused(status, by, left, free)
  local rank = '0'
  if ticket then
    rank = join(ticket, free)
  end
  if free and watch then
    left = string.format('%.0f', (lapses - now) / 1000)
  end
  return {status, by, left, stored, time[1], time[2], rank}
end

if turn or ticket then
  line(turn, time, string.sub(stored, 1, 20), ticket and value .. '\0' .. ARGV[11] or '')
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
-- The rule of node.Judge.
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
elseif stored ~= '' then
  -- The fence is not our token.
  redis.call('SET', KEYS[2], string.sub(stored, 1, 20) .. ' 00000000000000000000', 'KEEPTTL')
end
if turn then
  if ticket then redis.call('ZREM', KEYS[4], me) end
  serve(false)
end
return {'granted', server, '0', token, time[1], time[2]}
