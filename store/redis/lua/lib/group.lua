-- The group: the holders that share a lock. Its format is here alone;
-- store/redis/group.go parses what the scripts return of it. e.groupKey and e.now
-- are set before this is included.
--
-- The value of the lock's own key is a header, so that a client that knows no
-- groups sees a key that is held, and not by itself:
--   redlatch-group-2 KIND ID
-- KIND is r for readers, and s with two digits for so many slots. ID is new for each
-- group. The key expires with the last holder.
--
-- e.groupKey is a sorted set, in which a holder is found without the others:
--   i ID          0              the group that it belongs to. A set of another ID is a
--                                leftover: the lock's key was deleted, or has expired.
--   u SLOT VALUE  UNTIL          for each holder its expiry, µs; SLOT has 2 digits
--   t VALUE       TOKEN - 2^53   for each holder its token: below 0, and in order
-- Holders that have expired do not count, and are removed some at a time.
--
-- The functions are not there if neither the holder nor the request is of a group: to
-- define them takes time.
local groupMark, exact = 'redlatch-group-2 ', 9007199254740992

local function micros(at) return string.format('%.0f', at) end

local openGroup, tokenIn, liveSlots, shareIn, lastOf, described, freeSlots, live
if e.kind ~= '' or e.text and string.sub(e.text, 1, 17) == groupMark then
  -- openGroup(text) returns the kind of a group, and how many hold it; nil if the
  -- text is no group, or one whose set is gone: then its holder is unknown.
  function openGroup(text)
    if string.sub(text, 1, 17) ~= groupMark then return nil end
    local kind, id = string.match(text, '^(%w+) (%w+)$', 18)
    if not kind or not redis.call('ZSCORE', e.groupKey, 'i' .. id) then return nil end
    -- ZCOUNT would be a right more.
    local first = redis.call('ZRANGE', e.groupKey, '(' .. micros(e.now), '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]
    if not first then return kind, 0 end
    return kind, redis.call('ZRANK', e.groupKey, redis.call('ZRANGE', e.groupKey, -1, -1)[1]) - redis.call('ZRANK', e.groupKey, first) + 1
  end

  -- tokenIn(value) is the token of a holder, 20 digits; zeros for none.
  function tokenIn(value)
    return string.format('%020.0f', redis.call('ZSCORE', e.groupKey, 't' .. value) + exact)
  end

  -- liveSlots() returns all holders of slots, each as SLOT VALUE and its expiry.
  function liveSlots()
    local all = redis.call('ZRANGE', e.groupKey, '(' .. micros(e.now), '+inf', 'BYSCORE', 'WITHSCORES')
    for i = 1, #all, 2 do all[i] = string.sub(all[i], 2) end
    return all
  end

  -- shareIn(kind, value) returns the slot and the expiry of a value; nil if it
  -- holds nothing.
  function shareIn(kind, value)
    if kind == 'r' then
      local ends = tonumber(redis.call('ZSCORE', e.groupKey, 'u00' .. value) or 0)
      if ends > e.now then return '00', ends end
      return nil
    end
    local all = liveSlots()
    for i = 1, #all, 2 do
      if string.sub(all[i], 3) == value then return string.sub(all[i], 1, 2), tonumber(all[i + 1]) end
    end
  end

  -- lastOf() returns when the last holder expires.
  function lastOf() return tonumber(redis.call('ZRANGE', e.groupKey, -1, -1, 'WITHSCORES')[2]) end

  -- described(kind, count, all) is what a reply says of a group:
  --   redlatch-group-2, a space, COUNT (5 digits)  FIRST (16 digits, µs)  LAST (16 digits)
  --   and the holder with the lowest token, or all of them:
  --   UNTIL (16 digits, µs)  TOKEN (20 digits, zeros for none)  KIND (3 letters)
  --   SLOT (2 digits)  LENGTH (5 digits)  VALUE
  -- FIRST and LAST are when the first and the last of them expires. KIND is r-- for a
  -- reader. LENGTH is that of VALUE.
  function described(kind, count, all)
    local first = redis.call('ZRANGE', e.groupKey, '(' .. micros(e.now), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
    local parts = {string.format('%s%05d%016.0f%016.0f', groupMark, count, first, lastOf())}
    local function add(slot, ends, value)
      parts[#parts + 1] = string.format('%016.0f%s%s%s%05d', ends, tokenIn(value), kind == 'r' and 'r--' or kind, slot, #value) .. value
    end
    if all then
      local live = liveSlots()
      for i = 1, #live, 2 do add(string.sub(live[i], 1, 2), live[i + 1], string.sub(live[i], 3)) end
      return table.concat(parts)
    end
    local from = 0
    while not parts[2] do -- past holders that have expired
      local some = redis.call('ZRANGE', e.groupKey, '-inf', '(0', 'BYSCORE', 'LIMIT', from, 100)
      if not some[1] then break end
      for _, member in ipairs(some) do
        local value = string.sub(member, 2)
        local slot, ends = shareIn(kind, value)
        if slot then
          add(slot, ends, value)
          break
        end
      end
      from = from + 100
    end
    return table.concat(parts)
  end

  -- freeSlots(without) returns which slots are free, a 1 for each; '' if the request
  -- is not about slots. With without, our own slot is free too.
  function freeSlots(without)
    if string.sub(e.kind, 1, 1) ~= 's' then return '' end
    local slots = tonumber(string.sub(e.kind, 2))
    if not e.taken or without and e.count == 1 then return string.rep('1', slots) end
    if e.taken ~= e.kind then return string.rep('0', slots) end
    local free, all = {}, liveSlots()
    for i = 1, slots do free[i] = '1' end
    for i = 1, #all, 2 do
      local at = string.sub(all[i], 1, 2) + 1
      if free[at] and not (without and string.sub(all[i], 3) == e.value) then free[at] = '0' end
    end
    return table.concat(free)
  end

  -- live() keeps the lock's key, and the group, as long as the last holder.
  function live()
    local ms = micros(math.ceil((lastOf() - e.now) / 1000))
    redis.call('PEXPIRE', e.groupKey, ms)
    redis.call('PEXPIRE', e.lock, ms)
  end
end
