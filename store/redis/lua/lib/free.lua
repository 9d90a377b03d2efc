-- The common release: the lock is ours and nobody waits. It comes before the engine,
-- since even to define a function takes time.
if text == value and not turn then
  local rises = stored < token and tonumber(token) <= now + window
  if rises or token == '' or stored == token and not once then
    -- A full server refuses what needs memory only if it is a script's first write.
    call('DEL', lock)
    if rises then call('SET', fenceKey, token, 'PX', math.max(retention, call('PTTL', fenceKey))) end
    return now
  end
  -- Tokens above ours are reserved: they stay below the fence.
  if not once and #stored == 41 and stored > token and token ~= '' then
    local fence = string.sub(stored, 1, 20)
    call('DEL', lock)
    call('SET', fenceKey, fence, 'PX', math.max(retention, call('PTTL', fenceKey)))
    return {'granted', '', '0', fence, time[1], time[2], '0'}
  end
end
