-- Says of several locks who has them and who waits, and changes nothing.
--
-- KEYS     three for each lock: the lock, its fence, its queue
-- KEYS[4]  for one lock, with ARGV[2]: its marks; see remember.lua
-- KEYS[5]  and since when they are remembered
-- ARGV[1]  how many waiters to name at the most
-- ARGV[2]  how many marks to name at the most; left out for none
--
-- Reply: {now s, now µs, …}, all strings, and for each lock in the order of KEYS
--   status   held, foreign or absent
--   holder   its value; for a foreign format the type of the key
--   left     ms (-1: no expiry)
--   fence    as it is stored, or ''; see lib/fence.lua
--   waiting  how many wait
--   named    how many of them follow, each as ticket, member; see lib/queue.lua
-- With ARGV[2] then
--   since    since when marks are remembered, µs, or ''
--   …        the marks, the newest last, each as occurrence, until ms
local time = redis.call('TIME')
local reply = {time[1], time[2]}
local function add(text) reply[#reply + 1] = text end
for i = 1, ARGV[2] and 1 or #KEYS, 3 do
  local kind = redis.call('TYPE', KEYS[i]).ok
  if kind == 'none' then
    add('absent') add('') add('0')
  elseif kind == 'string' then
    add('held') add(redis.call('GET', KEYS[i])) add(tostring(redis.call('PTTL', KEYS[i])))
  else
    add('foreign') add(kind) add(tostring(redis.call('PTTL', KEYS[i])))
  end
  add(redis.call('GET', KEYS[i + 1]) or '')
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
  add(redis.call('GET', KEYS[5]) or '')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local marks = redis.call('ZRANGE', KEYS[4], -ARGV[2], -1, 'WITHSCORES')
  for i = 1, #marks, 2 do
    if tonumber(marks[i + 1]) > now then
      add(marks[i]) add(marks[i + 1])
    end
  end
end
return reply
