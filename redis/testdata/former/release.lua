-- release.lua as it was before locks could be shared.
local lock, value, token = KEYS[1], ARGV[1], ARGV[2]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local holder, fence, turn = got[1], token ~= '' and got[2] or '', got[3]
local once = ARGV[7] and holder == value and token ~= ''
local rises = fence < token and tonumber(token) <= time[1] * 1000000 + time[2] + ARGV[4]
if holder == value and not turn and (rises or fence >= token and not once) then
  if rises then
    fence = token
    redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
  end
  redis.call('DEL', lock)
  return {'granted', '', '0', fence, time[1], time[2]}
end
local fenceDigits, noToken = 20, '00000000000000000000'
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
if once and fence >= token then
  return {'stale', '', '0', fence, time[1], time[2]}
end
if fence < token then
local function fenceBeside(fence, holder)
  return fence .. ' ' .. (holder == '' and noToken or string.sub(holder, -fenceDigits))
end
local function tooFarAhead(token, fence, time, window, leap)
  local t = tonumber(token)
  return t > time[1] * 1000000 + time[2] + window and (fence == '' or t > string.sub(fence, 1, fenceDigits) + leap)
end
  if not tooFarAhead(token, fence, time, ARGV[4], ARGV[5]) then
    fence = holder and holder ~= value and fenceBeside(token, fence) or token
    redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
  elseif once then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
local reply
if holder == value then
  redis.call('DEL', lock)
  reply = {'granted', '', '0', fence, time[1], time[2]}
else
  reply = other(holder, fence, time)
end
if turn then
  openQueue(turn, time, string.sub(fence, 1, fenceDigits), '')
  redis.call('ZREM', KEYS[4], value .. toInbox .. ARGV[6], value .. toInbox)
  serve(reply[1] == 'granted' or reply[1] == 'absent')
end
return reply
