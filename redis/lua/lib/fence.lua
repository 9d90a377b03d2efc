-- Functions on the fence; fenceFormat.lua has its format.

-- fenceBeside(fence, holder) is what is stored while another token than the
-- fence holds the lock. holder is that token, or a stored fence that ends with
-- it; '' if there is none.
local function fenceBeside(fence, holder)
  return fence .. ' ' .. (holder == '' and noToken or string.sub(holder, -fenceDigits))
end

-- tooFarAhead(token, fence, time, window, leap) reports whether a token is too
-- far ahead of this server's clock, and of the fence: as package node's rule for
-- tokens has it. window is in µs, leap is how far it may leap over the fence.
local function tooFarAhead(token, fence, time, window, leap)
  local t = tonumber(token)
  return t > time[1] * 1000000 + time[2] + window and (fence == '' or t > string.sub(fence, 1, fenceDigits) + leap)
end

