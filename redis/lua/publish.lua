-- Sends a message to a channel, as a script that wakes somebody does.
--
-- KEYS[1]  any key        ARGV[1]  the channel
--                         ARGV[2]  the message
--
-- Reply: {listeners}
return {tostring(redis.call('PUBLISH', ARGV[1], ARGV[2]))}
