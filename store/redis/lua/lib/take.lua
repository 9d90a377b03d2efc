-- The common acquire: this server is trusted, nobody has the lock and nobody waits.
-- It comes before the engine, since even to define a function takes time.
if fit and from <= now and not text and not turn then
  local t = token ~= '' and token + 0
  if (t and stored < token and t >= now - window and t <= now + window or not t and stored == '')
    and call('SET', lock, value, 'NX', 'PX', ttl) then
    if t then
      -- Memory, disk and role were found fit for the first write of this
      -- script, and so are for the second.
      -- An argument that is a number is formatted first, at a third of the cost of the
      -- command: so it is the text, unless the fence lives longer already.
      local left = stored ~= '' and call('PTTL', fenceKey)
      call('SET', fenceKey, token, 'PX', left and left - retention > 0 and left or retention)
    end
    return now
  end
end
