-- The group of those who share a lock. It is the value of the lock's own key, so
-- that a client who knows no groups sees a key that is held, and not by itself.
-- Its format is here alone; redis/group.go parses it. queue.lua is included
-- before it.
--
--   redlatch-group-1, a space, and each holder in the order in which they came:
--   UNTIL (16 digits, µs)  TOKEN (20 digits, zeros for none)  KIND (3 letters)
--   SLOT (2 digits)  LENGTH (5 digits)  VALUE
--
-- UNTIL is the holder's expiry, on this server's clock. KIND is r-- for a reader,
-- and s with two digits for one of so many slots. LENGTH is that of VALUE. The key
-- expires with the last of them.
local groupMark = 'redlatch-group-1 '

-- readGroup(text, time, value) returns those of a group who have not expired, each
-- as it is stored; which of them has the value, nil for none; and when the last of
-- the others expires. It returns nil for a text that is no group. A group may have
-- a thousand holders, so no more is taken apart than is needed.
local function readGroup(text, time, value)
  if string.sub(text, 1, #groupMark) ~= groupMark then return nil end
  local at, sub, size, from = time[1] * 1000000 + time[2], string.sub, #text, #groupMark + 1
  local all, n, own, last = {}, 0, nil, 0
  while from <= size do
    local ends, length = tonumber(sub(text, from, from + 15)), tonumber(sub(text, from + 41, from + 45))
    if not ends or not length or from + 45 + length > size then return nil end
    local to = from + 45 + length
    if ends > at then
      n = n + 1
      all[n] = sub(text, from, to)
      if length == #value and sub(text, from + 46, to) == value then
        own = n
      elseif ends > last then
        last = ends
      end
    end
    from = to + 1
  end
  return all, own, last
end

-- tokenIn(holder), kindIn(holder) and slotIn(holder) take apart what readGroup
-- returns.
local function tokenIn(holder) return string.sub(holder, 17, 36) end
local function kindIn(holder) return (string.gsub(string.sub(holder, 37, 39), '-', '')) end
local function slotIn(holder) return string.sub(holder, 40, 41) end

-- groupHolder(ends, token, kind, slot, value) puts one together.
local function groupHolder(ends, token, kind, slot, value)
  return string.format('%016.0f%s%s%s%05d', ends, token, kind == 'r' and 'r--' or kind, slot, #value) .. value
end

-- seen(text, time, value) sets taken and count by what MGET found in the lock's
-- key, and returns it, with what readGroup returns of a group; false for nothing.
-- A group of which all have expired is removed.
local function seen(text, time, value)
  taken, count = nil, 0
  if not text then return false, {} end
  local all, own, last = readGroup(text, time, value)
  if not all then
    taken, count = '', 1
    return text, {}, text == value and 1 or nil, 0
  elseif #all == 0 then
    redis.call('DEL', KEYS[1])
    return false, {}
  end
  taken, count = kindIn(all[1]), #all
  return text, all, own, last
end

