-- The holders of a lock: one value has the whole of it, in the lock's key, or a
-- group shares it. group.lua is included before it.
--
-- e.taken is the kind of the holders, nil for none; e.count is how many they are.
-- e.own is what our value has of the lock: its kind, slot and token, and in a group
-- its expiry; nil for nothing. An exclusive request does not find a share of its
-- value: after a downgrade, it is late. e.foreign is the type of a key that is no
-- string, which MGET does not see.
if text then
  if openGroup then e.taken, e.count = openGroup(text) end
  if not e.taken then
    e.taken, e.count = '', 1
    if text == value then e.own = {kind = '', slot = '', token = e.whole} end
  elseif e.count == 0 then -- all have expired
    e.taken, e.text = nil, false
  elseif e.kind ~= '' then
    local slot, ends = shareIn(e.taken, value)
    if slot then e.own = {kind = e.taken, slot = slot, token = tokenIn(value), ends = ends} end
  end
else
  local type = redis.call('TYPE', lock).ok
  if type ~= 'none' then e.taken, e.count, e.foreign = '', 1, type end
end

-- fits(kind, taken, count) reports whether there is room for one more of a kind:
-- the rule of nodestate.Room.
local function fits(kind, taken, count)
  if not taken then return true end
  return kind == taken and kind ~= '' and count < (kind == 'r' and 10000 or tonumber(string.sub(kind, 2)))
end

-- others() returns e.taken and e.count without what is our own.
local function others()
  if not e.own then return e.taken, e.count end
  if e.count == 1 then return nil, 0 end
  return e.taken, e.count - 1
end

-- place() returns the slot that a grant gives us; nil if there is no room. The rule
-- of nodestate.Holders.Place.
local function place()
  if not fits(e.kind, others()) then return nil end
  if e.kind == '' then return e.slot end
  local free = freeSlots(e.own)
  if free == '' or string.sub(free, e.slot + 1, e.slot + 1) == '1' then return e.slot end
  if e.own and e.own.kind == e.kind then return e.own.slot end
  return string.format('%02d', string.find(free, '1', 1, true) - 1)
end

-- hold(slot, token) gives us the lock, or a share of it, for the whole time to
-- live. What a share costs does not depend on how many others there are.
local function hold(slot, token)
  local value, kind, own = e.value, e.kind, e.own
  if kind == '' then
    e.taken, e.count, e.text, e.whole = '', 1, value, token
    redis.call('SET', e.lock, value, 'PX', e.ttl)
    return
  end
  if e.taken ~= kind then -- there is no other holder
    local id = string.format('%016.0f', e.now) .. string.gsub(string.sub(value, 1, 32), '%W', '')
    e.taken, e.count, e.text = kind, 1, groupMark .. kind .. ' ' .. id
    redis.call('DEL', e.groupKey)
    redis.call('ZADD', e.groupKey, 0, 'i' .. id)
    redis.call('SET', e.lock, e.text, 'PX', e.ttl)
  else
    for _, member in ipairs(redis.call('ZRANGE', e.groupKey, '(0', micros(e.now), 'BYSCORE', 'LIMIT', 0, 100)) do
      redis.call('ZREM', e.groupKey, member, 't' .. string.sub(member, 4))
    end
    if own and own.slot ~= slot then redis.call('ZREM', e.groupKey, 'u' .. own.slot .. value) end
    if not own then e.count = e.count + 1 end
  end
  -- Numbers above exact are not exact.
  local ends = micros(math.min(e.now + e.ttl * 1000, exact - 1))
  redis.call('ZADD', e.groupKey, ends, 'u' .. slot .. value, micros(token - exact), 't' .. value)
  live()
end

-- drop() takes what is our own away.
local function drop()
  e.count = e.count - 1
  if e.count == 0 then
    e.taken, e.text = nil, false
    redis.call('DEL', e.lock, e.groupKey)
    return
  end
  redis.call('ZREM', e.groupKey, 'u' .. e.own.slot .. e.value, 't' .. e.value)
  live()
end

-- keep(ms) ends what is our own then, if not before.
local function keep(ms)
  if e.taken == '' then
    if redis.call('PTTL', e.lock) > ms then redis.call('PEXPIRE', e.lock, ms) end
    return
  end
  redis.call('ZADD', e.groupKey, micros(math.min(e.now + ms * 1000, e.own.ends)), 'u' .. e.own.slot .. e.value)
  live()
end
