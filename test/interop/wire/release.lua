-- KEYS  the lock, its fence
-- ARGV  value, the highest token that the value asked with in 20 digits, retention
--       of the fence in ms, window in µs
local time = redis.call('TIME')
local now, token, t = time[1] * 1000000 + time[2], ARGV[2], tonumber(ARGV[2])
local holder = redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GET', KEYS[1])
local stored = redis.call('GET', KEYS[2]) or ''
local fence = string.sub(stored, 1, 20)

-- The fence rises, so that a request of ours that comes later is refused. One
-- who holds the whole lock keeps its token in the second place.
if fence < token and (t <= now + ARGV[4] or fence ~= '' and t <= fence + 1000) then
  local text = token
  if holder and holder ~= ARGV[1] and string.sub(holder, 1, 17) ~= 'redlatch-group-2 ' then
    local own = #stored > 20 and string.sub(stored, 22, 41) or fence
    text = token .. ' ' .. (own ~= '' and own or '00000000000000000000')
  end
  redis.call('SET', KEYS[2], text, 'PX', math.max(ARGV[3], redis.call('PTTL', KEYS[2])))
end
if holder ~= ARGV[1] then return 'lost' end
redis.call('DEL', KEYS[1])
return 'granted'
