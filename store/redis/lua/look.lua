-- Reports holders and waiters of several locks, and changes nothing.
--
-- KEYS     five for each lock: the lock, its fence, its queue, its group, its last
--          break
-- KEYS[6]  for one lock, with ARGV[2]: its records; see records.lua
-- KEYS[7]  and its memory
-- ARGV[1]  how many waiters to name at most
-- ARGV[2]  how many records to name at most; left out for none
--
-- Reply: {now s, now µs, …}, all strings, and for each lock in the order of KEYS
--   status   held, foreign or absent
--   holder   its value, or a group, with all holders: see lib/group.lua; for a
--            foreign format the type of the key
--   left     ms (-1: no expiry)
--   fence    as it is stored, or ''; see lib/fence.lua
--   broken   the token of the last break that took it from a holder, or ''
--   waiting  the number of waiters
--   named    how many of them follow, each as ticket, member; see lib/queue.lua
-- With ARGV[2] then
--   since    from when on the records are complete, µs, or ''
--   …        the records, the newest last, each as occurrence, until ms
local time = redis.call('TIME')
local e = {now = time[1] * 1000000 + time[2]}
--#include group
--#include broken
local reply = {time[1], time[2]}
local function add(text) reply[#reply + 1] = text end
for i = 1, ARGV[2] and 1 or #KEYS, 5 do
  e.groupKey = KEYS[i + 3]
  local kind = redis.call('TYPE', KEYS[i]).ok
  if kind == 'none' then
    add('absent') add('') add('0')
  elseif kind == 'string' then
    local holder = redis.call('GET', KEYS[i])
    local kind, count = openGroup(holder)
    if count == 0 then
      add('absent') add('') add('0')
    else
      add('held') add(kind and described(kind, count, true) or holder) add(tostring(redis.call('PTTL', KEYS[i])))
    end
  else
    add('foreign') add(kind) add(tostring(redis.call('PTTL', KEYS[i])))
  end
  add(redis.call('GET', KEYS[i + 1]) or '')
  local _, broken = readBreak(KEYS[i + 4])
  add(broken)
  local waiting = redis.call('ZCARD', KEYS[i + 2])
  local named = {}
  if waiting > 0 and ARGV[1] ~= '0' then
    named = redis.call('ZRANGE', KEYS[i + 2], 0, ARGV[1] - 1, 'WITHSCORES')
  end
  add(tostring(waiting)) add(tostring(#named / 2))
  for j = 1, #named, 2 do
    add(named[j + 1]) add(named[j])
  end
end
if ARGV[2] then
  add(string.match(redis.call('GET', KEYS[7]) or '', '^%d+ (%d+)') or '')
  local records = redis.call('ZRANGE', KEYS[6], -ARGV[2], -1, 'WITHSCORES')
  for i = 1, #records, 2 do
    if tonumber(records[i + 1]) > math.floor(e.now / 1000) then
      add(records[i]) add(records[i + 1])
    end
  end
end
return reply
