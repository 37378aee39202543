-- SPDX-License-Identifier: MIT
-- Stacks of 100,000 frames, stacks that overflow, and stacks that go up and down.
local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end
local function waves(n)
  if n == 0 then return 0 end
  local sum = 0
  if n % 1000 == 0 then for i = 1, 20 do sum = sum + down(i) end end
  return sum + waves(n - 1)
end
local total = 0
for _ = 1, 3 do total = total + down(100000) end
total = total + waves(100000)

-- Two functions and C functions in turn, in a coroutine, too.
local function odd(n) if n > 0 then return (even(n - 1)) end return n end
function even(n) if n > 0 then return 1 + odd(n - 1) end return n end
total = total + even(150000)
total = total + coroutine.wrap(function() return down(100000) end)()

-- A coroutine that yields from a stack of 20,000 frames, again and again.
local function yielder(n)
  if n == 0 then for _ = 1, 10 do coroutine.yield(1) end return 0 end
  return (yielder(n - 1))
end
local co = coroutine.wrap(yielder)
for _ = 1, 10 do total = total + co(20000) end

-- Overflows: of Lua's stack, and of the C stack.
local function overflow() return 1 + overflow() end
for _ = 1, 2 do assert(not pcall(overflow)) end
local function through_c() return (pcall(through_c)) end
total = total + (through_c() and 1 or 0)
local function through_gsub(s) return (string.gsub(s, ".", through_gsub)) end
assert(not pcall(through_gsub, "a"))
local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end})
assert(not pcall(function() return t[1] end))

-- Down to 3,000 frames and a little up and down there.
local function walk(n, rounds)
  if n > 0 then return (walk(n - 1, rounds)) end
  local sum = 0
  for i = 1, rounds do sum = sum + down(i % 5) end
  return sum
end
total = total + walk(3000, 5000)
print(total)
