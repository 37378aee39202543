-- SPDX-License-Identifier: MIT
-- Coroutines inside coroutines, errors through them, pcall and string patterns.
local total = 0

local function deep(n)
  if n == 0 then coroutine.yield(("x"):rep(n + 10)) return 0 end
  return 1 + deep(n - 1)
end

for round = 1, tonumber(arg[1]) * 20 do
  local running = {}
  for i = 1, 20 do
    running[i] = coroutine.create(function()
      local inner = coroutine.wrap(function() deep(i) return ("y"):rep(i) end)
      total = total + #inner()
      coroutine.yield(i)
      total = total + #inner()
      if i % 5 == 0 then error({i}) end
    end)
  end
  for _ = 1, 2 do
    for i = 1, 20 do coroutine.resume(running[i]) end
  end
  local ok, err = pcall(function() error("e" .. round) end)
  total = total + #err + #(("a,b,c"):rep(20):gsub("%a", function(c) return c .. c end))
  total = total + #table.concat({round, round}, ",")
end
print(total)
