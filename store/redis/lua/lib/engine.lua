-- The rules of a node, as package internal/nodestate has them in Go: one set for
-- the whole lock, readers and slots. A script has read the entry (entry.lua), and
-- has set value, share, token, retention, window, ttl, ticket and inbox; nil for
-- what its operation has not, and '' for no share, token or inbox.
--
-- State is in e, and that of the queue in q, and not in locals: a function costs the
-- more to define, the more locals of the script it uses.
local e = {
  -- The request. kind is '' for the whole lock, r for a reader, s and two digits for
  -- one of so many slots; slot has two digits.
  value = value, kind = string.sub(share, 1, 3), slot = share == 'r' and '00' or string.sub(share, 4),
  token = token, retention = retention, window = window, ttl = ttl, ticket = ticket, inbox = inbox,
  -- What the server has, as in entry.lua; fence.lua and holders.lua set the rest.
  lock = lock, fenceKey = fenceKey, groupKey = KEYS[5] or 'redlatch:1:group:{' .. lock .. '}',
  time = time, now = now, text = text, stored = stored, turn = turn,
  fence = '', floor = '', whole = '', taken = nil, count = 0, own = nil, foreign = nil,
}
--#include fence
--#include group
--#include holders
--#include queue
--#include rules
