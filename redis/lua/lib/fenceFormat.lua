-- The fence of a name, as it is stored. Its format is here alone; redis/fence.go
-- parses it.
--
--   FENCE                20 digits
--   FENCE HOLDERTOKEN    20 digits, a space, 20 digits
--
-- A grant writes the first form: its token is the fence. The second form is
-- written where the fence is raised, or stays higher, while a value holds the
-- lock with another token: by the release of a value that does not hold it, by
-- an offer, and by a repair. Zeros are a holder without a token.
--
-- Scripts rely on this: a stored fence compares with 20 digits by < and >= as
-- its FENCE does. For any other comparison, and to add to it, it is cut first, to
-- the first fenceDigits letters. The last fenceDigits are the holder's token.
local fenceDigits, noToken = 20, '00000000000000000000'

