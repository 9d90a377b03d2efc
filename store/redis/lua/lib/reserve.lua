-- The common extension that reserves tokens: this server is trusted, the lock is ours,
-- and nobody waits. It comes before the engine, since even to define a function takes
-- time.
if fit and from <= now and text == value and not turn and stored < token and token < last then
  local window = tonumber(ARGV[9] or 0)
  if tonumber(token) >= now - window and tonumber(last) <= now + window then
    local both = last .. ' ' .. token
    call('PEXPIRE', lock, ttl) -- the first write, also on a full server
    call('SET', fenceKey, both, 'PX', math.max(retention, call('PTTL', fenceKey)))
    return {'granted', '', '0', both, time[1], time[2], '0', ''}
  end
end
