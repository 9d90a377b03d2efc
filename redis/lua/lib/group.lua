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

-- readGroup(text, time, value) takes a group apart: own is the holder with the
-- value, as it is stored, nil for none; before and after are all others, in one
-- piece each; count is how many there are with own, and last is when the last of
-- the others expires. Those who have expired are left out. It returns nil for a
-- text that is no group. A group may have a thousand holders, so no more is taken
-- out of it than is needed.
local function readGroup(text, time, value)
  if string.sub(text, 1, #groupMark) ~= groupMark then return nil end
  local at, sub, byte, size, from = time[1] * 1000000 + time[2], string.sub, string.byte, #text, #groupMark + 1
  local run, pieces, group = from, {}, {before = '', after = '', count = 0, last = 0}
  local mine = value ~= '' and string.find(text, value, from, true)
  while from <= size do
    local ends, a, b, c, d, e = tonumber(sub(text, from, from + 15)), byte(text, from + 41, from + 45)
    if not ends or not e then return nil end
    local length = (((a * 10 + b) * 10 + c) * 10 + d) * 10 + e - 48 * 11111
    local to = from + 45 + length
    if length < 0 or to > size then return nil end
    while mine and mine < from + 46 do mine = string.find(text, value, mine + 1, true) end
    local own = mine == from + 46 and length == #value
    if own or ends <= at then
      pieces[#pieces + 1] = sub(text, run, from - 1)
      run = to + 1
    end
    if ends > at then
      group.count = group.count + 1
      if own then
        group.before, group.own, pieces = table.concat(pieces), sub(text, from, to), {}
      elseif ends > group.last then
        group.last = ends
      end
    end
    from = to + 1
  end
  pieces[#pieces + 1] = sub(text, run)
  if group.own then group.after = table.concat(pieces) else group.before = table.concat(pieces) end
  return group
end

-- tokenIn(holder), kindIn(holder) and slotIn(holder) take one holder apart.
local function tokenIn(holder) return string.sub(holder, 17, 36) end
local function kindIn(holder) return (string.gsub(string.sub(holder, 37, 39), '-', '')) end
local function slotIn(holder) return string.sub(holder, 40, 41) end

-- eachOf(piece, f) calls f with each holder of a piece.
local function eachOf(piece, f)
  local from = 1
  while from < #piece do
    local to = from + 45 + string.sub(piece, from + 41, from + 45)
    f(string.sub(piece, from, to))
    from = to + 1
  end
end

-- groupHolder(ends, token, kind, slot, value) puts one together.
local function groupHolder(ends, token, kind, slot, value)
  return string.format('%016.0f%s%s%s%05d', ends, token, kind == 'r' and 'r--' or kind, slot, #value) .. value
end

-- seen(text, time, value) sets taken and count by what MGET found in the lock's
-- key, and returns it, with what readGroup returns of it; false for nothing. A
-- group of which all have expired is removed.
local function seen(text, time, value)
  taken, count = nil, 0
  if not text then return false end
  local group = readGroup(text, time, value)
  if not group then
    taken, count = '', 1
    return text
  elseif group.count == 0 then
    redis.call('DEL', KEYS[1])
    return false
  end
  taken, count = kindIn(group.before ~= '' and group.before or group.own), group.count
  return text, group
end

