-- Keeps the line of those who wait for the lock, and tells its head when the
-- lock is to be had. This file is put before the scripts that touch the line.
--
-- KEYS[3] is the turn, KEYS[4] the queue: a sorted set of those who wait,
--   score TICKET, member VALUE '\0' INBOX
-- An INBOX is empty for those who come and ask by themselves. One that begins
-- with + may have listeners elsewhere, which PUBLISH does not count.
--
-- The turn stands as long as the queue, and says what its head was told:
--   LAPSES (16 digits, µs)  TOLD (1 digit)  LENGTH of HEAD (5 digits)  HEAD  NEAR
-- LAPSES is when the head loses its place unless it asks before; nothing else
-- puts that off. TOLD is 1 when it was told that it is its turn, and the lock is
-- kept for it; 2 when another took the lock before it asked; else 0. NEAR is
-- the member that was told that it is next but one.
--
-- A message is: t (it is your turn) or n (you are near), FENCE (20 digits), VALUE
local lease, kept, remembered = 1000000, 300000, '90000'
local head, lapses, told, near = nil, 0, 0, ''
local now, fenced, me = 0, '', ''

-- Reads the turn. me is the member who asks, and so need not be told anything.
local function line(turn, time, fence, member)
  now, fenced, me = time[1] * 1000000 + time[2], fence, member
  if not turn then return end
  local at, said, n = tonumber(string.sub(turn, 1, 16)), tonumber(string.sub(turn, 17, 17)), tonumber(string.sub(turn, 18, 22))
  if at and said and n then
    lapses, told = at, said
    head, near = string.sub(turn, 23, 22 + n), string.sub(turn, 23 + n)
  end
end

-- Tells a member, and says whether it may still be there.
local function tell(member, what)
  local value, inbox = string.match(member, '^(.*)%z([^%z]*)$')
  if inbox == '' or inbox == nil then return true end
  if fenced == '' then fenced = '00000000000000000000' end
  -- A user may lack the right to publish; what the script is for stands all
  -- the same, and the one who waits asks after a while.
  local heard = redis.pcall('PUBLISH', 'redlatch:1:inbox:' .. inbox, what .. fenced .. value)
  return heard ~= 0 or string.sub(inbox, 1, 1) == '+'
end

-- Sees to it that somebody who is there stands first in line and knows what to
-- do, and returns it. free says that the lock is to be had.
local function serve(free)
  while true do
    local front = redis.call('ZRANGE', KEYS[4], 0, 1)
    local first, gone, same = front[1], false, false
    if not first then
      redis.call('DEL', KEYS[3])
      return nil
    end
    if first ~= head then
      if not free and first ~= near and first ~= me then gone = not tell(first, 'n') end
      head, told, lapses = first, 0, now + lease
    elseif first == me then
      told, lapses = 0, now + lease
    elseif lapses <= now then
      gone = true
    elseif told == 1 and not free then
      told = 2
    else
      same = told == 1 or not free
    end
    if free and not gone and told ~= 1 and first ~= me then
      if told == 0 then
        local polls = string.sub(first, -1) == '\0'
        lapses = now + (polls and lease or kept)
      end
      told = 1
      gone = not tell(first, 't')
    end
    -- Two know that they are near, at all times: each sees if the other is
    -- gone.
    local second = front[2]
    while not gone and second and second ~= near do
      near, same = second, false
      if second == me or tell(second, 'n') then break end
      redis.call('ZREM', KEYS[4], second)
      second = redis.call('ZRANGE', KEYS[4], 1, 1)[1]
    end
    if not gone then
      if not same then
        redis.call('SET', KEYS[3], string.format('%016.0f%d%05d', lapses, told, #head) .. head .. near, 'PX', remembered)
      end
      return first
    end
    redis.call('ZREM', KEYS[4], first)
    head = nil
  end
end

-- Puts me into the line, or renews my place, and returns which it is. A second
-- ticket does not move me.
local function join(ticket, free)
  redis.call('ZADD', KEYS[4], 'NX', ticket, me)
  redis.call('PEXPIRE', KEYS[4], remembered)
  serve(free)
  return tostring(redis.call('ZRANK', KEYS[4], me) + 1)
end
