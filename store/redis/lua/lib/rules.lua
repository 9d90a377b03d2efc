-- What the operations have in common: of the token and the reply.

-- raise(both) raises the fence to the token, and with both the floor. It lowers
-- neither.
local function raise(both)
  if e.token == '' then return end
  if e.fence < e.token then e.fence = e.token end
  if both and e.floor < e.token then e.floor = e.token end
  writeFence('PX', fenceLife())
end

-- grant(slot) gives us the lock, or a share of it, and raises the fence.
local function grant(slot)
  hold(slot, e.token ~= '' and e.token or noToken)
  raise(e.kind ~= 'r')
  -- The fence is not the token of a holder without one.
  if e.token == '' and e.fence ~= '' then writeFence('KEEPTTL') end
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
