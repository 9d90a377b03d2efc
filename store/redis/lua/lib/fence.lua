-- The fence of a name. Its format is here alone; store/redis/fence.go parses it.
--
--   FENCE                20 digits
--   FENCE HOLDERTOKEN    20 digits, a space, 20 digits
--   FENCE HOLDERTOKEN FLOOR
--
-- FLOOR is the highest token of a holder that is no reader, or of a release: a
-- reader's token need only be above it. Without it the floor is the fence.
-- A grant of the whole lock writes the first form: its token is the fence. The
-- second form is written where the fence is raised, or stays higher, while a value
-- holds the whole lock with another token: by the release of another value, by an
-- yield, and by a repair. Zeros are a holder without a token. The third form is
-- written where readers have raised the fence above the floor; HOLDERTOKEN is
-- zeros while a group has the lock, since the group has the tokens of its holders.
--
-- A stored fence compares with 20 digits by < and >= as its FENCE does.
--
-- e.fence is the highest token, '' for none; e.floor the highest of a holder that is
-- no reader, or of a release; e.whole the token of the holder of the whole lock, if
-- there is one. The last two are zeros for none.
local noToken = '00000000000000000000'
e.fence, e.whole, e.floor = string.sub(stored, 1, 20), string.sub(stored, 22, 41), string.sub(stored, 43, 62)
if e.whole == '' then e.whole = e.fence == '' and noToken or e.fence end
if e.floor == '' then e.floor = e.fence == '' and noToken or e.fence end

-- fenceLife() is how long the fence lives from now on, ms: for the retention, or
-- longer if an earlier request had a longer one.
local function fenceLife() return math.max(e.retention, redis.call('PTTL', e.fenceKey)) end

-- writeFence(expiry…) stores the fence.
local function writeFence(...)
  local whole = e.taken == '' and not e.foreign and e.whole
  if e.floor ~= e.fence then
    e.stored = e.fence .. ' ' .. (whole or noToken) .. ' ' .. e.floor
  else
    e.stored = whole and whole ~= e.fence and e.fence .. ' ' .. whole or e.fence
  end
  redis.call('SET', e.fenceKey, e.stored, ...)
end

-- judge(reader) is the rule of node.Judge, and with reader of node.JudgeShared.
local function judge(reader)
  local token, fence = e.token, e.fence
  if token == '' then return 'granted' end
  if token <= fence and not (reader and token > e.floor) then return 'stale' end
  local t = tonumber(token)
  local leap = 1000 -- how far it may leap over the fence: node.TokenLeap
  if t < e.now - e.window then return 'behind' end
  return t > e.now + e.window and (fence == '' or t > fence + leap) and 'ahead' or 'granted'
end
