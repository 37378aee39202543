-- SPDX-License-Identifier: MIT
-- Calls and nothing else.
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end
for _ = 1, arg[1] or 50 do fib(27) end
