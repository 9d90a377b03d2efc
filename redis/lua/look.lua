-- Says of several locks who has them and who waits, and changes nothing.
--
-- KEYS     three for each lock: the lock, its fence, its queue
-- ARGV[1]  how many waiters to name at the most
--
-- Reply: {now s, now µs, …}, all strings, and for each lock in the order of KEYS
--   status   held, foreign or absent
--   holder   its value; for a foreign format the type of the key
--   left     ms (-1: no expiry)
--   fence    as it is stored, or ''; see lib/fence.lua
--   waiting  how many wait
--   named    how many of them follow, each as ticket, member; see lib/queue.lua
local time = redis.call('TIME')
local reply = {time[1], time[2]}
local function add(text) reply[#reply + 1] = text end
for i = 1, #KEYS, 3 do
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
return reply
