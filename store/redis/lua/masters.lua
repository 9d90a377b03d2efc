-- Names a slot of each master of a cluster, so that each can be reached.
--
-- KEYS[1]  any key
--
-- Reply: {slot, slot, …}
local seen, reply = {}, {}
for _, range in ipairs(redis.call('CLUSTER', 'SLOTS')) do
  local master = range[3][3]
  if not seen[master] then
    seen[master] = true
    reply[#reply + 1] = tostring(range[1])
  end
end
return reply
