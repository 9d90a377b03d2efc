-- Takes, extends, frees, repairs or offers a share of the lock: that of a reader,
-- or a slot. What an op does, and why, is in acquire.lua, extend.lua, release.lua,
-- repair.lua and offer.lua, which are for the whole lock.
--
-- KEYS[1]  the lock                   ARGV[1]   acquire, extend, release, repair or offer
-- KEYS[2]  its fence                  ARGV[2]   value
-- KEYS[3]  its turn                   ARGV[3]   kind: r for a reader, or s and two digits
--                                               for one of so many slots
-- KEYS[4]  its queue                  ARGV[4]   slot, 2 digits
-- KEYS[5]  the server's marker;       ARGV[5]   time to live, ms
--          absent where it is not to  ARGV[6]   token, 20 digits; '' for none
--          be looked at               ARGV[7]   retention of the fence, ms
--                                     ARGV[8]   window of the token, µs
--                                     ARGV[9]   with KEYS[5]: the config of the membership
--                                     ARGV[10]  with KEYS[5]: o if the guard is off, else ''
--                                     ARGV[11]  inbox; '' for one who polls
--                                     ARGV[12]  to wait, and to offer: ticket, µs; else ''
--                                     ARGV[13]  acquire: b to barge; release: 1 if it must
--                                               not be applied twice; repair: when it is too
--                                               late, µs on this clock; else ''
--                                     ARGV[14]  release, may be absent: to keep the share
--                                               taken, for how long at most, ms; repair: when
--                                               this server said that it lacks the share, 16
--                                               digits, µs
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank, slot, free}, all
-- strings
--   granted     the share is ours, or, after a release, was; holder is the
--               server's replication id, with the guard on, or, after an
--               extension, remark if this server has no marker or not its own
--   held        holder has it, for as long as left says (-1: no expiry), or is
--               a group; see lib/group.lua
--   foreign     a key of type holder is in its place
--   absent      there is no key; or, to extend, the value has another share, or
--               has none and there is room for it
--   reserved    there is room, and it is kept for somebody before us in the queue;
--               left, unless it is 0, says when to look whether that one took it
--   stale       the token is not above the fence, or a reader's not above the
--               floor; or a repair is too late
--   behind      the token is too far behind this server's clock
--   ahead       the token is too far ahead of this server's clock, and of the fence
--   quarantine  this server may have forgotten locks; left says for how long yet
--   config      this server is marked for another membership, or for locks that
--               live less long
-- rank is our place in the queue, 1 for the head, and 0 for none. slot is the one
-- that was granted; free has a 1 for each slot that is free, and a 0 for each other
-- or an error: NOINFO, READONLY, UNREPLICATED
--#include role
--#include markerFormat
--#include marker
--#include guard
--#include fenceFormat
--#include fence
--#include queue
--#include group
local lock, op, value, kind, slot, token, ticket = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6], ARGV[12]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3], KEYS[5] or KEYS[3])
local text, stored, turn, marker = got[1], got[2] or '', got[3], KEYS[5] and got[4]
local guarded = KEYS[5] and ARGV[10] ~= 'o'
local fence, floor, released = string.sub(stored, 1, fenceDigits), floorOf(stored), releasedOf(stored)
local server, waits = '', ticket ~= ''

if op == 'acquire' or op == 'repair' then
  local refused
  if KEYS[5] and (marker or guarded) then
    refused = guard(marker, ARGV[9], ARGV[10], ARGV[5], time)
    server = guarded and marker and string.sub(marker, idFrom, idTo) or ''
  elseif op == 'repair' then
    refused = select(2, replication(true))
  end
  if refused then return refused end
end

-- group is that of those who share the lock, and empty where nobody does. own says
-- that the lock is ours, the whole of it or a share; had is what we have.
local group, own, had, foreign, left
left = '0'
text, group = seen(text, time, value)
group = group or {before = '', after = '', last = 0}
if taken == '' then
  left = tostring(redis.call('PTTL', lock))
  own = text == value
  had = {token = holderToken(stored), kind = '', slot = ''}
elseif taken then
  own = group.own ~= nil
  had = own and {token = tokenIn(group.own), kind = taken, slot = slotIn(group.own)}
else
  -- MGET does not see what is no string.
  local sort = redis.call('TYPE', lock).ok
  if sort ~= 'none' then
    foreign, taken, count = sort, '', 1
    left = tostring(redis.call('PTTL', lock))
  end
end

-- A release without a token does not look at the fence.
openQueue(turn, time, (op ~= 'release' or token ~= '') and fence or '', waits and memberOf(kind, value, ARGV[11]) or '')

-- freeSlots(without) returns which slots are free. With without, that of our own
-- is too.
local function freeSlots(without)
  if kind == 'r' then return '' end
  local slots = tonumber(string.sub(kind, 2))
  if not taken or without and count == 1 then return string.rep('1', slots) end
  if taken ~= kind then return string.rep('0', slots) end
  local free = {}
  for i = 1, slots do free[i] = '1' end
  eachOf(group.before .. (without and '' or group.own or '') .. group.after, function(holder)
    local at = slotIn(holder) + 1
    if free[at] then free[at] = '0' end
  end)
  return table.concat(free)
end

-- others() returns taken and count without our own share.
local function others()
  if not own then return taken, count end
  if count == 1 then return nil, 0 end
  return taken, count - 1
end

-- place() returns the slot that is ours if we are granted one; nil if there is no
-- room. The rule of node.Holders.Place.
local function place()
  local by, n = others()
  if not fits(kind, by, n) then return nil end
  if kind == 'r' then return slot end
  local free = freeSlots(own)
  if string.sub(free, slot + 1, slot + 1) == '1' then return slot end
  if own and had.kind == kind then return had.slot end
  local lowest = string.find(free, '1', 1, true)
  return lowest and string.format('%02d', lowest - 1)
end

-- write(kind, n, ends) writes the group, of n holders of that kind, of whom the
-- last expires then.
local function write(kind, n, ends)
  count, left = n, '0'
  if n == 0 then
    taken, text = nil, false
    redis.call('DEL', lock)
    return
  end
  taken, text = kind, groupMark .. group.before .. group.own .. group.after
  redis.call('SET', lock, text, 'PX', string.format('%.0f', math.ceil((ends - now) / 1000)))
end

-- hold(slot, token) gives us a share for the whole time to live.
local function hold(slot, token)
  -- Numbers above that are not exact.
  local ends = math.min(now + ARGV[5] * 1000, 9007199254740991)
  group.own = groupHolder(ends, token, kind, slot, value)
  write(kind, own and count or count + 1, math.max(ends, group.last))
end

-- drop() takes our share away.
local function drop()
  group.own = ''
  write(taken, count - 1, group.last)
end

-- keep(ms) has our share expire then, if not before.
local function keep(ms)
  if taken == '' then
    if tonumber(left) > ms then redis.call('PEXPIRE', lock, ms) end
    return
  end
  local ends = math.min(now + ms * 1000, tonumber(string.sub(group.own, 1, 16)))
  group.own = string.format('%016.0f', ends) .. string.sub(group.own, 17)
  write(taken, count, math.max(ends, group.last))
end

-- raise(both) raises the fence to the token, and the floor too if both is set. It
-- lowers neither.
local function raise(both)
  if token == '' then return end
  if fence < token then fence = token end
  if both and floor < token then floor = token end
  released = released or string.format('%016.0f', now)
  stored = fenceText(fence, taken == '' and not foreign and holderToken(stored) or nil, floor, released)
  redis.call('SET', KEYS[2], stored, 'PX', ARGV[7])
end

-- grant(slot) gives us a share, and raises the fence.
local function grant(slot)
  hold(slot, token ~= '' and token or noToken)
  raise(kind ~= 'r')
end

-- judge(shared) is the rule of node.Judge, and with shared of node.JudgeShared.
local function judge(shared)
  if token == '' then return 'granted' end
  local old = tonumber(token) < now - ARGV[8]
  if token <= fence then
    if not shared or token <= floor then return 'stale' end
    return old and 'behind' or 'granted'
  end
  if old then return 'behind' end
  return tooFarAhead(token, fence, time, ARGV[8]) and 'ahead' or 'granted'
end

-- isNext() reports whether there is room for us, and for all who are before us in
-- the queue. One who does not wait is behind all of them.
local function isNext()
  local by, n = others()
  if turn then
    local queued = waits and redis.call('ZSCORE', KEYS[4], me)
    -- At most 64 are looked at.
    local front = redis.call('ZRANGE', KEYS[4], 0, 64, 'WITHSCORES')
    for i = 1, #front, 2 do
      local member, score = front[i], tonumber(front[i + 1])
      if queued and member == me then break end
      if waits and not queued and (tonumber(ticket) < score or tonumber(ticket) == score and me < member) then break end
      local theirs = kindOf(member)
      if i > 128 or not fits(theirs, by, n) then return false end
      by, n = theirs, n + 1
    end
  end
  return fits(kind, by, n)
end

-- leave() removes us from the queue. The inbox may have been denied, or allowed,
-- meanwhile; and we may have waited for the whole lock.
local function leave()
  redis.call('ZREM', KEYS[4], memberOf(kind, value, ARGV[11]), memberOf(kind, value, ''),
    memberOf('', value, ARGV[11]), memberOf('', value, ''))
end

-- reply(status, rank) returns the reply of a status; refused the same of an
-- acquire, and queues us if we may wait.
local function reply(status, rank)
  local by, lasts = '', '0'
  if status == 'held' then by, lasts = text, left end
  if status == 'foreign' then by, lasts = foreign, left end
  return {status, by, lasts, stored, time[1], time[2], rank or '0', '', op == 'acquire' and freeSlots() or ''}
end

local function refused(status)
  local rank = waits and join(ticket)
  local r = reply(status, rank)
  if status == 'reserved' and watch then
    r[3] = string.format('%.0f', (lapses - now) / 1000)
  end
  return r
end

-- state() is the reply about a lock that is not ours.
local function state()
  return reply(foreign and 'foreign' or text and 'held' or 'absent')
end

if op == 'acquire' then
  if foreign then return refused('foreign') end
  local at = place()
  if not at then return refused('held') end
  if own then
    local overtaken = token ~= had.token and token <= (kind == 'r' and floor or fence) or kind == 'r' and token < had.token
    if token ~= '' and overtaken then return reply('stale') end
    if judge(kind == 'r') == 'ahead' then return reply('ahead') end
    -- A copy of the request that was granted must not move the holder: its claim
    -- may have won with the slot that the first one got.
    if had.kind == kind and had.token == (token ~= '' and token or noToken) then at = had.slot end
  else
    if turn and ARGV[13] ~= 'b' then
      local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
      if first ~= me then first = serve() end
      if first and not isNext() then
        return refused(fits(kindOf(first), taken, count) and 'reserved' or 'held')
      end
    end
    local verdict = judge(kind == 'r')
    if verdict ~= 'granted' then return reply(verdict) end
  end
  grant(at)
  if turn then
    if waits then redis.call('ZREM', KEYS[4], me) end
    serve()
  end
  return {'granted', server, '0', stored, time[1], time[2], '0', at, freeSlots()}

elseif op == 'extend' then
  -- Absent where a repair would find room.
  if not own then return not foreign and place() == slot and reply('absent') or state() end
  if marker and (string.sub(marker, listFrom, listTo) ~= string.sub(ARGV[9], 1, 1 + listTo - listFrom)
    or tonumber(ARGV[5]) > tonumber(string.match(marker, '^%d+', maxTTLFrom)) + 1) then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  local downgraded = had.kind == '' and kind == 'r'
  if not downgraded and (had.kind ~= kind or had.slot ~= slot) then return reply('absent') end
  local info, wrong = replication(not guarded)
  local standing = read(marker)
  if standing and not wrong then wrong = unreplicated(info, standing) end
  if wrong then return wrong end
  if token ~= '' then redis.call('PEXPIRE', KEYS[2], ARGV[7]) end
  hold(slot, had.token)
  if downgraded and turn then serve() end
  local r = reply('granted')
  if guarded and not (marker and string.find(info, 'master_replid:' .. string.sub(marker, idFrom, idTo), 1, true)) then
    r[2] = 'remark'
  end
  return r

elseif op == 'release' then
  local verdict, r = judge(false), nil
  if own and ARGV[13] == '1' and (verdict == 'stale' or verdict == 'ahead') then return reply(verdict) end
  if own and ARGV[14] then
    keep(tonumber(ARGV[14]))
  elseif own then
    drop()
  end
  if verdict ~= 'ahead' then
    released = string.format('%016.0f', now)
    raise(true)
  end
  r = own and reply('granted') or state()
  if turn then
    fenced = token ~= '' and fence or ''
    leave()
    serve()
  end
  return r

elseif op == 'repair' then
  local at = place()
  if own and had.kind == kind and had.slot == slot then return reply('granted') end
  if at ~= slot then return state() end
  if not own then
    -- It may have been here, and have been released.
    local gone = token <= floor and not (released and released < ARGV[14])
    if gone or now > tonumber(ARGV[13]) then return reply('stale') end
  end
  grant(slot)
  if turn then
    fenced = fence
    leave()
    serve()
  end
  return reply('granted')

else -- offer
  if not own then return state() end
  local verdict = judge(false)
  if verdict == 'stale' or verdict == 'ahead' then return reply(verdict) end
  if isNext() then
    -- The caller relies on what it keeps: see offer.lua.
    raise(kind ~= 'r')
    return reply('granted')
  end
  drop()
  return reply('reserved', join(ticket))
end
