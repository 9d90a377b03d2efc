-- The common release: the lock is ours and nobody waits. It comes before the engine,
-- since even to define a function takes time.
if text == value and not turn then
  local rises = stored < token and tonumber(token) <= now + window
  if rises or token == '' or stored == token and not once then
    -- A full server refuses what needs memory only if it is a script's first write.
    call('DEL', lock)
    if rises then call('SET', fenceKey, token, 'PX', retention) end
    return now
  end
end
