-- The common acquire: this server is trusted, nobody has the lock and nobody waits.
-- It comes before the engine, since even to define a function takes time.
if fit and from <= now and not text and not turn then
  local t = tonumber(token)
  if (t and stored < token and t >= now - window and t <= now + window or not t and stored == '')
    and call('SET', lock, value, 'NX', 'PX', ttl) then
    if t then
      -- Memory, disk and role were found fit for the first write of this
      -- script, and so are for the second.
      call('SET', fenceKey, token, 'PX', stored == '' and retention or math.max(retention, call('PTTL', fenceKey)))
    end
    return now
  end
end
