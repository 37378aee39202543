-- SPDX-License-Identifier: MIT
-- Up and down 3,000 frames, again and again.
local function down(n)
  if n == 0 then return 0 end
  return 1 + down(n - 1)
end
for _ = 1, 1000 * (arg[1] or 12) do down(3000) end
