-- The queue of those who wait for a lock, and the wakes by which its head learns
-- that the lock is free. The formats are here alone; redis/list.go parses the
-- members, and redis/inbox.go the messages. fenceFormat.lua is included before it.
--
-- KEYS[4] is the queue: a sorted set of those who wait,
--   score TICKET, member VALUE toInbox INBOX           for the whole lock
--                 member KIND toInbox VALUE toInbox INBOX   for a share of it
-- KIND is r for a reader, and s with two digits for one of so many slots. Of one
-- ticket, those of one kind are next to each other. An INBOX is empty for those
-- who poll. One that begins with + may have listeners on other servers, which
-- PUBLISH does not count.
--
-- KEYS[3] is the turn. It exists as long as the queue, and says what its head
-- was notified of:
--   LAPSES (16 digits, µs)  TOLD (1 digit)  REACH (3 digits)  HEAD  NEAR  CALLED...
-- each of the last with its LENGTH (5 digits) before it. LAPSES is when the head
-- loses its place unless it asks before; nothing else postpones that. TOLD is 1
-- if it was notified that it is its turn, and the lock is kept for it; 2 if
-- another took the lock before it asked; else 0. NEAR is the member that was
-- notified that it is next but one; TOLD is 4 more if it was notified that it is
-- its turn as well, since there is room for both. CALLED are those behind a head that did not
-- ask, who were called to ask at once and have not: they lose their places
-- together with the head that they have now. REACH is how many were called.
--
-- A message is: t (it is your turn), n (you are near) or c (ask at once),
-- FENCE (20 digits), VALUE
--
-- lease is how long a place lasts without a request, kept how long the lock is
-- kept for a head that was notified, late how late that one may be before others
-- look, all in µs; remembered is how long both keys outlast the last change, ms.
local lease, kept, late, remembered = 1000000, 300000, 50000, '90000'
local head, lapses, told, near, nearTurn, called, reach = nil, 0, 0, '', false, {}, 0
-- me is the member who asks, '' for none. watch says that the head is late, or
-- was notified just now: then others look at lapses whether it came. same says
-- that the turn need not be written. Scripts may read me, watch, lapses and now.
local toInbox = '\0'
local now, fenced, me, watch, same = 0, '', '', false, true
-- taken is the kind of those who have the lock, '' for one who has all of it, nil
-- for nobody; count is how many they are. Scripts set both before they serve.
local taken, count = nil, 0

-- fits(kind, taken, count) reports whether there is room for one more of a kind:
-- the rule of node.Room.
local function fits(kind, taken, count)
  if not taken then return true end
  return kind == taken and kind ~= '' and count < (kind == 'r' and 1000 or tonumber(string.sub(kind, 2)))
end

-- kindOf(member) returns its kind, '' for the whole lock.
local function kindOf(member)
  return string.match(member, '^(r)%z.*%z') or string.match(member, '^(s%d%d)%z.*%z') or ''
end

-- memberOf(kind, value, inbox) puts a member together.
local function memberOf(kind, value, inbox)
  return (kind ~= '' and kind .. toInbox or '') .. value .. toInbox .. inbox
end

-- polls(member) reports whether it has no inbox, and so cannot be notified.
local function polls(member) return string.sub(member, -1) == toInbox end

-- openQueue(turn, time, fence, member) reads the turn. member is the one who
-- asks, and so need not be notified; '' for none. It comes before the functions
-- below.
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
    nearTurn = said >= 4
    lapses, told, reach = at, said % 4, asked
    head, near = members[1], members[2]
    for i = 3, #members do
      if members[i] == me then same = false else called[#called + 1] = members[i] end
    end
  end
end

-- writeTurn() writes the turn.
local function writeTurn()
  local text = {string.format('%016.0f%d%03d', lapses, told + (nearTurn and 4 or 0), reach)}
  for _, member in ipairs({head, near, unpack(called)}) do
    text[#text + 1] = string.format('%05d', #member) .. member
  end
  redis.call('SET', KEYS[3], table.concat(text), 'PX', remembered)
end

-- notify(member, what) sends a message, and returns false if the member is gone.
local function notify(member, what)
  local value, inbox = string.match(member, '^(.*)%z([^%z]*)$')
  if inbox == '' or inbox == nil then return true end
  local kind = kindOf(member)
  if kind ~= '' then value = string.sub(value, #kind + 2) end
  if fenced == '' then fenced = noToken end
  -- A user may lack the right to publish; the script goes on all the same, and
  -- the one who waits asks after a while.
  local heard = redis.pcall('PUBLISH', 'redlatch:1:inbox:' .. inbox, what .. fenced .. value)
  return heard ~= 0 or string.sub(inbox, 1, 1) == '+'
end

-- call() asks those behind the head to show that they are there: eight times as
-- many as last time, when nobody did. They lapse together with the head.
local function call()
  local most = polls(head) and 511 or math.min(8 * reach + 7, 511)
  local behind = redis.call('ZRANGE', KEYS[4], 1, most)
  reach = #behind
  if behind[1] then near, nearTurn = behind[1], false end
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

-- serve() sees to it that the head of the queue is somebody who is there and was
-- notified if there is room for it, and returns it; nil for an empty queue. If
-- there is room for the second too, that one is notified as well: so each of them
-- lets in the next.
local function serve()
  local unheard = false
  if nearTurn and near == me then nearTurn, same = false, false end
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
      head, near, nearTurn, called, reach = nil, '', false, {}, 0
      return nil
    end
    local kind = kindOf(first)
    local free = fits(kind, taken, count)
    if nearTurn and not free then nearTurn, same = false, false end
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
      if first ~= near or not nearTurn then gone = not notify(first, 't') end
    end
    if gone then
      redis.call('ZREM', KEYS[4], first)
      head = nil
    else
      if unheard and first ~= me then
        call()
        front[2] = reach > 0 and near
      end
      -- It is late, and so may not come at all.
      if told == 1 and lapses - now <= (polls(first) and lease or kept) - late then watch = true end
      -- Two know that they are near, at all times: each sees if the other is
      -- gone.
      local second = front[2]
      while second do
        local turn = free and fits(kindOf(second), kind, count + 1)
        local knows = second == me or second == near and (nearTurn or not turn)
        local also = turn and second ~= me
        if second ~= near or also ~= nearTurn then
          near, nearTurn, same = second, also, false
        end
        if knows or notify(second, turn and 't' or 'n') then break end
        redis.call('ZREM', KEYS[4], second)
        second = redis.call('ZRANGE', KEYS[4], 1, 1)[1]
      end
      if not same then writeTurn() end
      same = true
      return first
    end
  end
end

-- join(ticket) puts me into the queue, or renews my place, and returns its rank.
-- A second ticket does not move me.
local function join(ticket)
  redis.call('ZADD', KEYS[4], 'NX', ticket, me)
  redis.call('PEXPIRE', KEYS[4], remembered)
  serve()
  return tostring(redis.call('ZRANK', KEYS[4], me) + 1)
end

