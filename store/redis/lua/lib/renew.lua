-- The common extension: the lock is ours. A server that is quarantined may extend it
-- too. It comes before the engine, since even to define a function takes time.
if fit and text == value then
  call('PEXPIRE', fenceKey, math.max(retention, call('PTTL', fenceKey)))
  call('PEXPIRE', lock, ttl)
  return now
end
