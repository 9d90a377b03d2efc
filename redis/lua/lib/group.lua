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

-- readGroup(text, time) returns those of a group who have not expired, each as a
-- table of ends, token, kind, slot, value, and text, which is all of that as it is
-- stored; nil for a text that is no group.
local function readGroup(text, time)
  if string.sub(text, 1, #groupMark) ~= groupMark then return nil end
  local at, from, all = time[1] * 1000000 + time[2], #groupMark + 1, {}
  while from <= #text do
    local ends, token, kind, slot, length = string.match(text, '^(%d+)(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)([rs][%d-][%d-])(%d%d)(%d%d%d%d%d)', from)
    if not ends or #ends ~= 16 then return nil end
    local to = from + 45 + length
    if to > #text then return nil end
    if tonumber(ends) > at then
      all[#all + 1] = {ends = tonumber(ends), token = token, kind = kind == 'r--' and 'r' or kind, slot = slot,
        value = string.sub(text, from + 46, to), text = string.sub(text, from, to)}
    end
    from = to + 1
  end
  return all
end

-- seen(text, time) sets taken and count by what MGET found in the lock's key, and
-- returns it; false for nothing. A group of which all have expired is removed.
local function seen(text, time)
  taken, count = nil, 0
  if not text then return false end
  local group = readGroup(text, time)
  if not group then
    taken, count = '', 1
  elseif #group == 0 then
    redis.call('DEL', KEYS[1])
    return false
  else
    taken, count = group[1].kind, #group
  end
  return text
end

