-- What a request that may wait asks of the queue; queue.lua has its state.
local join, isNext
if q then
  -- join(ticket) puts me into the queue, or renews my place, and returns its rank.
  -- A second ticket does not move me.
  function join(ticket)
    redis.call('ZADD', q.key, 'NX', ticket, q.me)
    redis.call('PEXPIRE', q.key, q.remembered)
    serve()
    return tostring(redis.call('ZRANK', q.key, q.me) + 1)
  end

  -- isNext() reports whether there is room for us, and for all waiters before us. A
  -- request that does not wait is behind all of them.
  function isNext()
    local by, n = others()
    if e.turn then
      local ticket = tonumber(e.ticket)
      local queued = ticket and redis.call('ZSCORE', q.key, q.me)
      -- At most 64 are looked at. Before an exclusive request there may be none.
      local front = redis.call('ZRANGE', q.key, 0, e.kind == '' and 0 or 64, 'WITHSCORES')
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
end
