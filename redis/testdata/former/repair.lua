-- repair.lua as it was before locks could be shared.
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
local function guard(marker, config, off, ttl, time)
  off = off == 'o'
  if off and not marker then return nil end
  local info, refused = replication(off)
  if not info then return refused end
  local standing = read(marker)
  if marker and not standing then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  if off then
    if standing.list ~= string.sub(config, 1, 1 + listTo - listFrom) or tonumber(ttl) > tonumber(standing.ttl) + 1 then
      return {'config', marker, '0', '', time[1], time[2]}
    end
    return unreplicated(info, standing)
  end
  if not standing then
    return {'quarantine', 'unmarked', tostring(quarantineOf(config)), '', time[1], time[2]}
  end
  if standing.config ~= config then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  local left = standing.trusted - (time[1] * 1000000 + time[2])
  if not string.find(info, 'master_replid:' .. standing.id, 1, true) or setBack(standing, left) then
    return {'quarantine', 'remark', tostring(standing.quarantine), '', time[1], time[2]}
  end
  if left <= 0 then return unreplicated(info, standing) end
  return {'quarantine', standing.reason, string.format('%.0f', math.ceil(left / 1000)), '', time[1], time[2]}
end
local fenceDigits, noToken = 20, '00000000000000000000'
local function fenceBeside(fence, holder)
  return fence .. ' ' .. (holder == '' and noToken or string.sub(holder, -fenceDigits))
end
local function tooFarAhead(token, fence, time, window, leap)
  local t = tonumber(token)
  return t > time[1] * 1000000 + time[2] + window and (fence == '' or t > string.sub(fence, 1, fenceDigits) + leap)
end
local lease, kept, late, remembered = 1000000, 300000, 50000, '90000'
local head, lapses, told, near, called, reach = nil, 0, 0, '', {}, 0
local toInbox = '\0'
local now, fenced, me, watch, same = 0, '', '', false, true
local function polls(member) return string.sub(member, -1) == toInbox end
local function openQueue(turn, time, fence, member)
  now, fenced, me = time[1] * 1000000 + time[2], fence, member
  if not turn then return end
  local at, said, asked = tonumber(string.sub(turn, 1, 16)), tonumber(string.sub(turn, 17, 17)), tonumber(string.sub(turn, 18, 20))
  local members, from = {}, 21
  while from <= #turn do
    local n = tonumber(string.sub(turn, from, from + 4))
    if not n then return end
    members[#members + 1] = string.sub(turn, from + 5, from + 4 + n)
    from = from + 5 + n
  end
  if at and said and asked and #members >= 2 then
    lapses, told, reach = at, said, asked
    head, near = members[1], members[2]
    for i = 3, #members do
      if members[i] == me then same = false else called[#called + 1] = members[i] end
    end
  end
end
local function writeTurn()
  local text = {string.format('%016.0f%d%03d', lapses, told, reach)}
  for _, member in ipairs({head, near, unpack(called)}) do
    text[#text + 1] = string.format('%05d', #member) .. member
  end
  redis.call('SET', KEYS[3], table.concat(text), 'PX', remembered)
end
local function notify(member, what)
  local value, inbox = string.match(member, '^(.*)%z([^%z]*)$')
  if inbox == '' or inbox == nil then return true end
  if fenced == '' then fenced = noToken end
  local heard = redis.pcall('PUBLISH', 'redlatch:1:inbox:' .. inbox, what .. fenced .. value)
  return heard ~= 0 or string.sub(inbox, 1, 1) == '+'
end
local function call()
  local most = polls(head) and 511 or math.min(8 * reach + 7, 511)
  local behind = redis.call('ZRANGE', KEYS[4], 1, most)
  reach, near = #behind, behind[1] or near
  for _, member in ipairs(behind) do
    if member ~= me then
      if notify(member, 'c') then
        called[#called + 1] = member
        if polls(member) then lapses = now + lease end
      else
        redis.call('ZREM', KEYS[4], member)
        reach = reach - 1
      end
    end
  end
end
local function serve(free)
  local unheard = false
  if head and head ~= me and lapses <= now and redis.call('ZRANGE', KEYS[4], 0, 0)[1] == head then
    unheard = #called == reach
    if not unheard then reach = 0 end
    redis.call('ZREM', KEYS[4], head, unpack(called))
    head, called = nil, {}
  end
  while true do
    local front = redis.call('ZRANGE', KEYS[4], 0, 1)
    local first, gone = front[1], false
    if not first then
      redis.call('DEL', KEYS[3])
      return nil
    end
    if first ~= head then
      if not free and first ~= near and first ~= me then gone = not notify(first, 'n') end
      head, told, lapses, same = first, 0, now + lease, false
    elseif first == me then
      told, lapses, same = 0, now + lease, false
    elseif told == 1 and not free then
      told, same = 2, false
    end
    if free and not gone and told ~= 1 and first ~= me then
      if told == 0 then
        lapses = now + (polls(first) and lease or kept)
      end
      told, same, watch = 1, false, true
      gone = not notify(first, 't')
    end
    if gone then
      redis.call('ZREM', KEYS[4], first)
      head = nil
    else
      if unheard and first ~= me then
        call()
        front[2] = reach > 0 and near
      end
      if told == 1 and lapses - now <= (polls(first) and lease or kept) - late then watch = true end
      local second = front[2]
      while second and second ~= near do
        near, same = second, false
        if second == me or notify(second, 'n') then break end
        redis.call('ZREM', KEYS[4], second)
        second = redis.call('ZRANGE', KEYS[4], 1, 1)[1]
      end
      if not same then writeTurn() end
      same = true
      return first
    end
  end
end
local function join(ticket, free)
  redis.call('ZADD', KEYS[4], 'NX', ticket, me)
  redis.call('PEXPIRE', KEYS[4], remembered)
  serve(free)
  return tostring(redis.call('ZRANK', KEYS[4], me) + 1)
end
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
local lock, value, token = KEYS[1], ARGV[1], ARGV[3]
local time = redis.call('TIME')
local marker = KEYS[5] and redis.call('GET', KEYS[5])
local refused
if marker or KEYS[5] and ARGV[8] ~= 'o' then
  refused = guard(marker, ARGV[7], ARGV[8], ARGV[2], time)
else
  refused = select(2, replication(true))
end
if refused then return refused end
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local holder, fence, turn = got[1], got[2] or '', got[3]
if holder == value then
  return {'granted', '', '0', fence, time[1], time[2]}
end
if holder then
  return other(holder, fence, time)
end
fence = string.sub(fence, 1, fenceDigits)
if fence == token or time[1] * 1000000 + time[2] > tonumber(ARGV[6]) then
  return {'stale', '', '0', fence, time[1], time[2]}
end
if not redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
  return other(holder, fence, time)
end
if fence < token then
  fence = token
  redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
else
  redis.call('SET', KEYS[2], fenceBeside(fence, token), 'PX', ARGV[4])
end
if turn then
  openQueue(turn, time, fence, '')
  redis.call('ZREM', KEYS[4], value .. toInbox .. ARGV[5])
  serve(false)
end
return {'granted', '', '0', fence, time[1], time[2]}
