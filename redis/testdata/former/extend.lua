-- extend.lua as it was before locks could be shared.
local function other(holder, fence, time)
  local status = 'held'
  if not holder then
    holder = redis.call('TYPE', KEYS[1]).ok
    if holder == 'none' then
      return {'absent', '', '0', fence, time[1], time[2]}
    end
    status = 'foreign'
  end
  return {status, holder, tostring(redis.call('PTTL', KEYS[1])), fence, time[1], time[2]}
end
local function replication(lenient)
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'table' then
    if lenient then return '' end
    return nil, redis.error_reply('NOINFO this user may not ask INFO')
  end
  if not string.find(info, 'role:master', 1, true) then
    return nil, redis.error_reply('READONLY this server is a replica')
  end
  return info
end
local version, idFrom, idTo, configFrom = '2 ', 3, 42, 44
local listFrom, listTo, maxTTLFrom = 44, 59, 61
local function read(marker)
  local id, config, list, ttl, window, quarantine, replicas, lag, trusted, reason, nodes =
    string.match(marker or '', '^2 (%x+) ((%x+) (%d+) (%d+) (%d+) (%d+) (%d+)) (%d+) (%a+) (.*)$')
  if not id then return nil end
  return {
    id = id, config = config, list = list, ttl = ttl, window = window, quarantine = tonumber(quarantine),
    replicas = replicas, lag = lag, trusted = tonumber(trusted), reason = reason, nodes = nodes,
  }
end
local function written(id, config, trusted, reason, nodes)
  return string.format('2 %s %s %016.0f %s %s', id, config, trusted, reason, nodes)
end
local function quarantineOf(config)
  return tonumber(string.match(config, '^%x+ %d+ %d+ (%d+)'))
end
local function setBack(standing, left)
  return left > standing.quarantine * 1000 and standing.reason ~= 'list'
end
local function online(info, lag)
  local n = 0
  for seconds in string.gmatch(info, 'slave%d+:[^\r\n]*,state=online,[^\r\n]*lag=(%d+)') do
    if seconds * 1000 <= tonumber(lag) then n = n + 1 end
  end
  return n
end
local function unreplicated(info, standing)
  local need, n = tonumber(standing.replicas), 0
  if need > 0 then n = online(info, standing.lag) end
  if n < need then
    return redis.error_reply(string.format('UNREPLICATED %d of %d required replicas are online with a lag of %.0f s or less',
      n, need, standing.lag / 1000))
  end
end
local lock, token = KEYS[1], ARGV[3]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, unpack(KEYS, 2))
local holder, fence, marker = got[1], token ~= '' and got[2] or '', got[3]
if holder ~= ARGV[1] then
  return other(holder, fence, time)
end
if marker and (string.sub(marker, listFrom, listTo) ~= ARGV[5]
  or tonumber(ARGV[2]) > tonumber(string.match(marker, '^%d+', maxTTLFrom)) + 1) then
  return {'config', marker, '0', '', time[1], time[2]}
end
local guarded = KEYS[3] and ARGV[6] ~= 'o'
local info, refused = replication(not guarded)
local standing = read(marker)
if standing and not refused then refused = unreplicated(info, standing) end
if refused then return refused end
if token ~= '' then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
redis.call('PEXPIRE', lock, ARGV[2])
local remark = guarded and not (marker and string.find(info, 'master_replid:' .. string.sub(marker, idFrom, idTo), 1, true))
return {'granted', remark and 'remark' or '', '0', token, time[1], time[2]}
