-- KEYS  the lock, its fence, the marker
-- ARGV  value, time to live in ms, token in 20 digits, retention of the fence in
--       ms, window in µs if there is no marker, LIST, 1 if there must be a marker
local time = redis.call('TIME')
local now, window = time[1] * 1000000 + time[2], tonumber(ARGV[5])
local function reply(status, fence) return {status, fence or '', string.format('%.0f', now), string.format('%.0f', window)} end

-- The server: a master, and by its marker one that has forgotten nothing.
local info, marker = redis.call('INFO', 'replication'), redis.call('GET', KEYS[3])
if not string.find(info, 'role:master', 1, true) then return reply('replica') end
if marker then
  local id, list, ttl, span, replicas, trusted = string.match(marker, '^3 (%x+) %d+ (%x+) (%d+) (%d+) %d+ (%d+) %d+ (%d+) ')
  if list ~= ARGV[6] or replicas ~= '0' or tonumber(ARGV[2]) > ttl + 1 then return reply('config') end
  if not string.find(info, 'master_replid:' .. id, 1, true) or tonumber(trusted) > now then return reply('quarantine') end
  window = tonumber(span)
elseif ARGV[7] == '1' then
  return reply('quarantine')
end

-- The lock: free, or ours by an earlier request.
local free = redis.call('EXISTS', KEYS[1]) == 0
if not free and (redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1]) then return reply('held') end

-- The token: above the fence, and near this server's clock.
local fence = string.sub(redis.call('GET', KEYS[2]) or '', 1, 20)
local token, t = ARGV[3], tonumber(ARGV[3])
if fence ~= '' and (token < fence or token == fence and free) then return reply('stale', fence) end
if free and t < now - window then return reply('behind', fence) end
if t > now + window and (fence == '' or t > fence + 1000) then return reply('ahead', fence) end

redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[2], token, 'PX', math.max(ARGV[4], redis.call('PTTL', KEYS[2])))
return reply('granted', token)
