-- Functions on the fence; fenceFormat.lua has its format.

-- fenceText(fence, holder, floor, released) is what is stored. holder is the token
-- of the one who has the whole lock; nil if there is none. released is when a
-- share may have been released last; nil for not known.
local function fenceText(fence, holder, floor, released)
  if released then return fence .. ' ' .. (holder or noToken) .. ' ' .. floor .. ' ' .. released end
  if floor ~= fence then return fence .. ' ' .. (holder or noToken) .. ' ' .. floor end
  if holder and holder ~= fence then return fence .. ' ' .. holder end
  return fence
end

-- holderToken(stored) is the token of the one who has the whole lock, by a stored
-- fence; zeros for none.
local function holderToken(stored)
  if stored == '' then return noToken end
  return #stored > fenceDigits and string.sub(stored, fenceDigits + 2, 2 * fenceDigits + 1) or stored
end

-- floorOf(stored) is the floor of a stored fence; zeros for none.
local function floorOf(stored)
  local floor = string.sub(stored, 2 * fenceDigits + 3, 3 * fenceDigits + 2)
  if floor == '' then floor = string.sub(stored, 1, fenceDigits) end
  return floor == '' and noToken or floor
end

-- releasedOf(stored) is when a share may have been released last; nil for not
-- known.
local function releasedOf(stored)
  local released = string.sub(stored, 3 * fenceDigits + 4)
  return released ~= '' and released or nil
end

-- tooFarAhead(token, fence, time, window) reports whether a token is too far ahead
-- of this server's clock, and of the fence: as package node's rule for tokens has
-- it. window is in µs.
local function tooFarAhead(token, fence, time, window)
  local leap = 1000 -- how far it may leap over the fence: node.TokenLeap
  local t = tonumber(token)
  return t > time[1] * 1000000 + time[2] + window and (fence == '' or t > string.sub(fence, 1, fenceDigits) + leap)
end

