-- The queue of waiters for a lock, and the notifications by which its head learns
-- that the lock is free. The formats are here alone; store/redis/list.go parses the
-- members, and store/redis/inbox.go the messages.
--
-- The queue is a sorted set of waiters,
--   score TICKET, member VALUE NUL INBOX            for the whole lock
--                 member KIND NUL VALUE NUL INBOX   for a share of it
-- KIND is r for a reader, and s with two digits for one of so many slots. Of one
-- ticket, those of one kind are next to each other. INBOX is empty for a waiter
-- that polls. One that begins with + may have listeners on other servers, which
-- PUBLISH does not count.
--
-- The turn exists as long as the queue, and has what its head was
-- notified of:
--   LAPSES (16 digits, µs)  NOTIFIED (1 digit)  REACH (3 digits)  HEAD  NEAR  CALLED...
-- each of the last with its LENGTH (5 digits) before it. LAPSES is when the head
-- loses its place unless it asks before; nothing else postpones that. NOTIFIED is
-- 1 if it was notified that it is its turn, and the lock is reserved for it; 2 if
-- another took the lock before it asked; else 0. NEAR is the member that was
-- notified that it is next but one; NOTIFIED is 4 more if that one was notified
-- that it is its turn as well, since there is room for both. CALLED are waiters
-- behind a head that did not ask. They were called to ask at once, and have not:
-- they lose their places together with the present head. REACH is how many were
-- called.
--
-- A message is: t (it is your turn), n (you are near) or c (ask at once),
-- FENCE (20 digits), VALUE
--
-- q is the state of the queue; nil if it is empty and stays so: then its functions are
-- not defined either, which takes time. me is the waiter that asks, and so need not be
-- notified; '' for none. fenced is the fence of the messages. watch says that the head
-- is late, or was notified just now: then others check at lapses whether it came. same
-- says that the turn need not be written. remembered is how long both keys outlast
-- the last change, ms. The others are the parts of the turn.
local q, kindOf, memberOf, serve, withdraw
if turn or ticket then
  q = {
    key = KEYS[4] or 'redlatch:1:queue:{' .. lock .. '}', turnKey = turnKey, remembered = '90000',
    me = '', fenced = e.fence, watch = false, same = true,
    head = nil, lapses = 0, notified = 0, near = '', nearTurn = false, called = {}, reach = 0,
  }

  -- kindOf(member) returns its kind, '' for the whole lock.
  function kindOf(member)
    return string.match(member, '^(r)%z.*%z') or string.match(member, '^(s%d%d)%z.*%z') or ''
  end

  -- memberOf(kind, value, inbox) puts a member together.
  function memberOf(kind, value, inbox)
    return (kind ~= '' and kind .. '\0' or '') .. value .. '\0' .. inbox
  end

  if ticket then q.me = memberOf(e.kind, value, inbox) end
  if turn then
    local lapses, notified, reach = tonumber(string.sub(turn, 1, 16)), tonumber(string.sub(turn, 17, 17)), tonumber(string.sub(turn, 18, 20))
    local members, from = {}, 21
    while from <= #turn do
      local n = tonumber(string.sub(turn, from, from + 4))
      if not n then break end
      members[#members + 1] = string.sub(turn, from + 5, from + 4 + n)
      from = from + 5 + n
    end
    if lapses and notified and reach and #members >= 2 then
      q.lapses, q.notified, q.nearTurn, q.reach = lapses, notified % 4, notified >= 4, reach
      q.head, q.near = members[1], members[2]
      for i = 3, #members do
        if members[i] == q.me then q.same = false else q.called[#q.called + 1] = members[i] end
      end
    end
  end

  -- notify(member, what) sends a message, and returns false if the member is gone.
  local function notify(member, what)
    local value, inbox = string.match(member, '^(.*)%z([^%z]*)$')
    if inbox == '' or inbox == nil then return true end
    local kind = kindOf(member)
    if kind ~= '' then value = string.sub(value, #kind + 2) end
    if q.fenced == '' then q.fenced = noToken end
    -- A user may lack the right to publish. The script goes on all the same, and
    -- the waiter asks after a while.
    local heard = redis.pcall('PUBLISH', 'redlatch:1:inbox:' .. inbox, what .. q.fenced .. value)
    return heard ~= 0 or string.sub(inbox, 1, 1) == '+'
  end

  -- serve() makes sure that the head of the queue is alive, and was notified if there
  -- is room for it, and returns it; nil for an empty queue. If there is room for the
  -- second too, that one is notified as well: so each of them lets in the next.
  function serve()
    -- lease is how long a place lasts without a request, reserve how long the lock is
    -- reserved for a head that was notified, late how late that one may be before
    -- others check, all in µs.
    local lease, reserve, late = 1000000, 300000, 50000
    local unheard = false
    if q.nearTurn and q.near == q.me then q.nearTurn, q.same = false, false end
    if q.head and q.head ~= q.me and q.lapses <= e.now and redis.call('ZRANGE', q.key, 0, 0)[1] == q.head then
      unheard = #q.called == q.reach
      if not unheard then q.reach = 0 end
      redis.call('ZREM', q.key, q.head, unpack(q.called))
      q.head, q.called = nil, {}
    end
    while true do
      local front = redis.call('ZRANGE', q.key, 0, 1)
      local first, gone = front[1], false
      if not first then
        redis.call('DEL', q.turnKey)
        q.head, q.near, q.nearTurn, q.called, q.reach = nil, '', false, {}, 0
        return nil
      end
      local kind = kindOf(first)
      local free = fits(kind, e.taken, e.count)
      local polls = string.sub(first, -1) == '\0' -- it has no inbox, and so cannot be notified
      local kept = polls and lease or reserve
      if q.nearTurn and not free then q.nearTurn, q.same = false, false end
      if first ~= q.head then
        q.head, q.notified, q.lapses, q.same = first, 0, e.now + lease, false
        if not free and first ~= q.me then
          if unheard then
            q.lapses = e.now + kept
            gone = not notify(first, 'c')
          elseif first ~= q.near then
            gone = not notify(first, 'n')
          end
        end
      elseif first == q.me then
        q.notified, q.lapses, q.same = 0, e.now + lease, false
      elseif q.notified == 1 and not free then
        q.notified, q.same = 2, false
      end
      if free and not gone and q.notified ~= 1 and first ~= q.me then
        if q.notified == 0 then q.lapses = e.now + kept end
        q.notified, q.same, q.watch = 1, false, true
        if first ~= q.near or not q.nearTurn then gone = not notify(first, 't') end
      end
      if gone then
        redis.call('ZREM', q.key, first)
        q.head = nil
      else
        if unheard and first ~= q.me then
          -- The waiters behind the head are to show that they are alive: eight times as
          -- many as last time, when none did. They lapse together with the head, which
          -- was notified as well.
          local behind = redis.call('ZRANGE', q.key, 1, polls and 511 or math.min(8 * q.reach + 7, 511))
          q.reach = #behind
          if behind[1] then q.near, q.nearTurn = behind[1], false end
          for _, member in ipairs(behind) do
            if member == q.me then
              -- It is alive.
            elseif notify(member, 'c') then
              q.called[#q.called + 1] = member
              if string.sub(member, -1) == '\0' then q.lapses = e.now + lease end
            else
              redis.call('ZREM', q.key, member)
              q.reach = q.reach - 1
            end
          end
          front[2] = q.reach > 0 and q.near
        end
        -- It is late, and so may not come at all.
        if q.notified == 1 and q.lapses - e.now <= kept - late then q.watch = true end
        -- Two know that they are near, at all times: each sees if the other is
        -- gone.
        local second = front[2]
        while second do
          local turn = free and fits(kindOf(second), kind, e.count + 1)
          local knows = second == q.me or second == q.near and (q.nearTurn or not turn)
          local also = turn and second ~= q.me
          if second ~= q.near or also ~= q.nearTurn then
            q.near, q.nearTurn, q.same = second, also, false
          end
          if knows or notify(second, turn and 't' or 'n') then break end
          redis.call('ZREM', q.key, second)
          second = redis.call('ZRANGE', q.key, 1, 1)[1]
        end
        if not q.same then
          local text = string.format('%016.0f%d%03d%05d', q.lapses, q.notified + (q.nearTurn and 4 or 0), q.reach, #q.head) ..
            q.head .. string.format('%05d', #q.near) .. q.near
          if q.called[1] then -- there may be many
            local called = {}
            for i, member in ipairs(q.called) do called[i] = string.format('%05d', #member) .. member end
            text = text .. table.concat(called)
          end
          redis.call('SET', q.turnKey, text, 'PX', q.remembered)
        end
        q.same = true
        return first
      end
    end
  end

  -- withdraw() removes our value from the queue. The inbox may have been denied, or
  -- allowed, meanwhile; and the value may have waited for the whole lock.
  function withdraw()
    redis.call('ZREM', q.key, memberOf('', e.value, e.inbox), memberOf('', e.value, ''))
    if e.kind ~= '' then
      redis.call('ZREM', q.key, memberOf(e.kind, e.value, e.inbox), memberOf(e.kind, e.value, ''))
    end
  end
end
