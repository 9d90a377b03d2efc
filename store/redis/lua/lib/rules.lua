-- What the operations have in common: of the token, the queue and the reply.

-- raise(both) raises the fence to the token, and with both the floor. It lowers
-- neither.
local function raise(both)
  if e.token == '' then return end
  if e.fence < e.token then e.fence = e.token end
  if both and e.floor < e.token then e.floor = e.token end
  writeFence('PX', e.retention)
end

-- grant(slot) gives us the lock, or a share of it, and raises the fence.
local function grant(slot)
  hold(slot, e.token ~= '' and e.token or noToken)
  raise(e.kind ~= 'r')
  -- The fence is not the token of a holder without one.
  if e.token == '' and e.fence ~= '' then writeFence('KEEPTTL') end
end

-- isNext() reports whether there is room for us, and for all waiters before us. A
-- request that does not wait is behind all of them.
local function isNext()
  local by, n = others()
  if e.turn then
    local ticket = tonumber(e.ticket)
    local queued = ticket and redis.call('ZSCORE', e.queueKey, q.me)
    -- At most 64 are looked at. Before an exclusive request there may be none.
    local front = redis.call('ZRANGE', e.queueKey, 0, e.kind == '' and 0 or 64, 'WITHSCORES')
    for i = 1, #front, 2 do
      local member, score = front[i], tonumber(front[i + 1])
      if queued and member == q.me then break end
      if ticket and not queued and (ticket < score or ticket == score and q.me < member) then break end
      local theirs = kindOf(member)
      if i > 128 or not fits(theirs, by, n) then return false end
      by, n = theirs, n + 1
    end
  end
  return fits(e.kind, by, n)
end

-- withdraw() removes our value from the queue. The inbox may have been denied, or
-- allowed, meanwhile; and the value may have waited for the whole lock.
local function withdraw()
  redis.call('ZREM', e.queueKey, memberOf('', e.value, e.inbox), memberOf('', e.value, ''))
  if e.kind ~= '' then
    redis.call('ZREM', e.queueKey, memberOf(e.kind, e.value, e.inbox), memberOf(e.kind, e.value, ''))
  end
end

-- reply(status, rank) is the reply of a status.
local function reply(status, rank)
  local by, left = '', '0'
  if status == 'held' and e.taken ~= '' then
    by = described(e.taken, e.count)
  elseif status == 'held' or status == 'foreign' then
    by, left = e.foreign or e.text, tostring(redis.call('PTTL', e.lock))
  end
  return {status, by, left, e.stored, e.time[1], e.time[2], rank or '0'}
end

-- state() is the reply about a lock that is not ours.
local function state()
  return reply(e.foreign and 'foreign' or e.text and 'held' or 'absent')
end
